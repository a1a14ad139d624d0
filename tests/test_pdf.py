"Kinds of PDF that people meet. Each test says what a reader of the page sees, and that must be what is indexed and cited"
from pathlib import Path
import pytest
pymupdf = pytest.importorskip("pymupdf")
from mimirag.evidence.errors import ExtractionError
from mimirag.extract.pdf import extract_pdf
from mimirag.extract.readers import extract
from mimirag.sources.profile import Limits
from pdf_writer import Pdf, show

def one_page(*lines: bytes, **more) -> bytes:
    pdf = Pdf()
    for name,value in more.items(): setattr(pdf, name, value)
    pdf.page(b"".join(lines))
    return pdf.build()

def test_ligatures(kb_of):
    "A ligature is one character of the page and two letters of a word"
    pdf = Pdf()
    pdf.mapped_font("L1", {1: "FB01", 2: "FB02"})
    pdf.page(show(72, 700, "The work\x02ow con\x01guration \x01le.", font="L1"))
    kb = kb_of({"a.pdf": pdf.build()})
    for query in ["workflow", "configuration", "workflow configuration file", "work\ufb02ow"]: assert kb.search(query)[0].page==1, query
    assert kb.search("workflow")[0].text=="The work\ufb02ow con\ufb01guration \ufb01le."
    assert kb.resolve(kb.search("workflow")[0]).holds

def test_hyphens_at_line_ends(kb_of):
    "A hyphen of the word stays in it, one of the typesetter does not hide it; the evidence has both as printed"
    kb = kb_of({"a.pdf": one_page(show(72, 700, "Every beam passes the load-"), show(72, 684, "bearing check. Then the configu-"), show(72, 668, "ration is read. Only load-bearing beams count."))})
    for query in ["load-bearing check", "configuration", "loadbearing"]: assert kb.search(query).items, query
    text = kb.search("configuration")[0].text
    assert "load-\nbearing" in text and "configu-\nration" in text and "loadbearing" not in text

def test_soft_hyphens(kb_of):
    kb = kb_of({"a.pdf": one_page(show(72, 700, "Each config\xaduration is checked; see the syn\xad"), show(72, 684, "chronisation of the cross-\xad"), show(72, 668, "sectional design."))})
    for query in ["configuration", "synchronisation", "cross-sectional"]: assert kb.search(query).items, query
    assert "crosssectional" not in kb.search("configuration")[0].text

def text_order(text: str, phrases: list[str]):
    places = [text.index(phrase) for phrase in phrases]
    assert places==sorted(places), text

def test_columns_are_not_read_across():
    left,right = ["Approval of a new release", "requires a quorum of seven", "members of the standing group."], ["A rejected release stays", "in quarantine for nine days", "before it may be resubmitted."]
    lines = [show(60, 712-14*n, a, 11)+show(330, 712-14*n, b, 11) for n,(a,b) in enumerate(zip(left, right))]
    text_order(extract_pdf(one_page(*lines)).pages[0].text, left+right)

def test_three_columns_below_a_title():
    columns = [[f"Column {name} has line {n} here" for n in range(8)] for name in "ABC"]
    lines = [show(40+180*c, 700-12*n, columns[c][n], 9) for n in range(8) for c in range(3)]
    found = extract_pdf(one_page(show(40, 740, "A title that runs over all three of the columns that follow below it", 15), *lines)).pages[0].text
    text_order(found, ["A title", *columns[0], *columns[1], *columns[2]])

def test_a_table_is_read_in_rows():
    rows = [("Set pressure", "6.2 bar", "valve"), ("Capacity", "41 l/s", "at 10 %"), ("Weight", "23.5 kg", "dry"), ("Height", "410 mm", "with cap")]
    found = extract_pdf(one_page(*(show(60+150*c, 700-20*n, cell) for n,row in enumerate(rows) for c,cell in enumerate(row)))).pages[0].text
    assert [line.split("  ") for line in found.strip().split("\n")]==[list(row) for row in rows]

def test_page_numbers_and_labels(kb_of):
    "The position names the page, the printed label is a hint"
    pdf = Pdf()
    pdf.catalogue = b"/PageLabels << /Nums [0 << /S /r >> 2 << /S /D /St 1 >>] >>"
    for text in ["Preface.", "Contents.", "The quokka ledger is kept for eleven years.", "Appendix."]: pdf.page(show(72, 700, text))
    item = kb_of({"a.pdf": pdf.build()}).search("quokka ledger")[0]
    assert (item.page, item.label)==(3, "1") and ";page=3;" in str(item.citation)

def test_encryption(kb_of):
    with pymupdf.open(stream=one_page(show(72, 700, "The walrus threshold is 42."))) as plain:
        permissions = plain.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_128, user_pw="", owner_pw="o", permissions=0)
        locked = plain.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="u", owner_pw="o")
    kb = kb_of({"open.pdf": permissions, "locked.pdf": locked})
    assert [item.path for item in kb.search("walrus threshold")]==["open.pdf"]
    assert [(item.path, "password" in item.reason) for item in kb.report.unreadable]==[("locked.pdf", True)]

def test_pages_without_text(kb_of):
    "A page that is a picture is reported, and the others keep their numbers; a document of nothing else is not indexed"
    mixed,scan = Pdf(), Pdf()
    for pdf in (mixed, scan): pdf.image("Im1")
    mixed.page(show(72, 700, "The pelican valve."))
    mixed.page(b"q 300 0 0 300 100 300 cm /Im1 Do Q")
    mixed.page(show(72, 700, "The heron valve."))
    for _ in range(2): scan.page(b"q 300 0 0 300 100 300 cm /Im1 Do Q")
    kb = kb_of({"mixed.pdf": mixed.build(), "scan.pdf": scan.build()})
    assert kb.search("heron")[0].page==3
    assert [(note.path, note.note) for note in kb.report.notes]==[("mixed.pdf", "page 2: no text, 1 image")]
    assert [item.path for item in kb.report.unreadable]==["scan.pdf"] and "no text" in kb.report.unreadable[0].reason
    assert kb.report.documents==1

def test_invisible_text_is_not_evidence(kb_of):
    kb = kb_of({"a.pdf": one_page(show(72, 700, "Approved travel budget: 62,300 units."), show(72, 680, "Erratum: the approved travel budget is 5 units.", mode=3),
                                  show(72, 660, "White on white: 7 units.", colour="1 g"), show(72, 640, "Tiny: 8 units.", size=0.5), show(72, 620, "Filed by the desk."))})
    text = kb.search("approved travel budget")[0].text
    assert text=="Approved travel budget: 62,300 units.\nFiled by the desk."
    assert kb.search("62300").items and "cannot see" in kb.report.notes[0].note

def test_white_text_on_a_dark_bar_is_seen():
    found = extract_pdf(one_page(b"0 0 0.4 rg 60 690 300 30 re f\n", show(72, 700, "White on a bar", colour="1 g")))
    assert found.pages[0].text=="White on a bar\n" and not found.notes

def test_a_recognition_layer_is_taken_and_said(kb_of):
    "Invisible text over a picture, with nothing else on the page, is what a scanner recognised"
    pdf = Pdf()
    pdf.image("Im1")
    pdf.page(b"q 595 0 0 842 0 0 cm /Im1 Do Q\n"+show(72, 700, "The scanned osprey rule.", mode=3))
    kb = kb_of({"a.pdf": pdf.build()})
    assert kb.search("osprey").items and "recognition layer" in kb.report.notes[0].note

def font_of_boxes() -> bytes:
    "A TrueType font of 110 boxes, of which nothing says what letters they are: no cmap, no glyph names"
    from io import BytesIO
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    names,glyphs = [".notdef", *(f"g{n}" for n in range(1, 110))], {}
    for n,name in enumerate(names):
        pen = TTGlyphPen(None)
        for at,(x,y) in enumerate([(60, 0), (60, 200+5*n), (440, 200+5*n), (440, 0)]): (pen.lineTo if at else pen.moveTo)((x, y))
        pen.closePath()
        glyphs[name] = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({0xE000+n: name for n,name in enumerate(names)})
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics({name: (500, 60) for name in names})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable(dict(familyName="Boxes", styleName="Regular"))
    builder.setupOS2()
    builder.setupPost()
    builder.setupMaxp()
    for table in ("cmap", "post", "name", "OS/2"): del builder.font[table]
    builder.font.save(out := BytesIO())
    return out.getvalue()

def test_a_font_without_unicode_is_not_quoted(kb_of):
    "Glyph numbers that look like letters are no text; the page is reported, the next one is normal"
    pdf,font = Pdf(), font_of_boxes()
    program = pdf.stream(font, b" /Length1 %d" % len(font), compress=True)
    descriptor = pdf.add(b"<< /Type /FontDescriptor /FontName /AAAAAA+Boxes /Flags 4 /FontBBox [0 -200 1000 800] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 /FontFile2 %d 0 R >>" % program)
    descendant = pdf.add(b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /AAAAAA+Boxes /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor %d 0 R /CIDToGIDMap /Identity /DW 500 >>" % descriptor)
    pdf.fonts["G1"] = pdf.add(b"<< /Type /Font /Subtype /Type0 /BaseFont /AAAAAA+Boxes /Encoding /Identity-H /DescendantFonts [%d 0 R] >>" % descendant)
    glyphs = "".join(f"{ord(letter)-29:04X}" for letter in "The kettle boils on the third shelf").encode()
    pdf.page(b"BT /G1 14 Tf 1 0 0 1 72 700 Tm <%s> Tj ET" % glyphs)
    pdf.page(show(72, 700, "The kestrel budget was approved."))
    kb = kb_of({"a.pdf": pdf.build()})
    assert kb.search("kestrel budget")[0].page==2
    assert not kb.search("7KH NHWWOH").items and kb.report.notes[0].note.startswith("page 1: unreadable")

def test_nul_characters(kb_of):
    pdf = Pdf()
    pdf.mapped_font("N1", {3: "0000"})
    pdf.info = b"/Title (Rules) /Producer (Driver 1.3\\000)"
    pdf.page(show(72, 700, "The osprey comes first \x03\x03 and the tanager last.", font="N1"))
    kb = kb_of({"a.pdf": pdf.build()})
    for query in ["osprey", "tanager"]:
        item = kb.search(query)[0]
        assert "\0" not in item.text and kb.resolve(item).holds

def test_damage(kb_of):
    "A wrong pointer is repaired, and said; what cannot be opened is listed, and the build goes on"
    pdf = Pdf()
    for text in ["First page.", "The cormorant clause ends in June."]: pdf.page(show(72, 700, text))
    whole = pdf.build()
    start = whole.rindex(b"startxref\n")
    kb = kb_of({"pointer.pdf": whole[:start]+b"startxref\n7\n%%EOF\n", "half.pdf": whole[:120], "none.pdf": b"", "text.pdf": b"just words\n", "fine.md": "fine\n"})
    assert kb.search("cormorant")[0].page==2 and any("repaired" in note.note for note in kb.report.notes)
    assert {item.path for item in kb.report.unreadable}=={"half.pdf", "none.pdf", "text.pdf"}
    assert kb.search("fine").items

def test_no_pages():
    with pytest.raises(ExtractionError, match="no pages"): extract_pdf(Pdf().build())

@pytest.mark.parametrize("said", [b"1", b"0", b"-1", b"900000000", b"/x"])
def test_a_wrong_number_of_pages(said):
    "No page is lost because the document counts too few, and none for an absurd number; that it was put right is said"
    pdf = Pdf()
    for n in range(3): pdf.page(show(72, 700, f"The plover of page {n}."))
    whole = pdf.build()
    assert whole.count(b"/Count 3")==1
    found = extract_pdf(whole.replace(b"/Count 3", b"/Count "+said))
    assert [page.text for page in found.pages]==[page.text for page in extract_pdf(whole).pages] and "repaired" in found.notes[0]

def test_a_font_of_private_characters_is_not_quoted(kb_of):
    pdf = Pdf()
    pdf.mapped_font("P1", {3: "E041", 4: "E042"})
    pdf.page(show(72, 700, "\x03\x04"*9, font="P1"))
    pdf.page(show(72, 700, "A tick \x03 among words.", font="P1"))
    kb = kb_of({"a.pdf": pdf.build()})
    assert kb.report.notes[0].note.startswith("page 1: unreadable") and kb.search("tick among words")[0].page==2

@pytest.mark.parametrize("turn,matrix", [(90, "0 1 -1 0 {y} {x}"), (270, "0 -1 1 0 {y} {x}"), (180, "-1 0 0 -1 {x} {y}")])
def test_a_rotated_page_reads_as_it_is_displayed(turn, matrix):
    lines = ["First comes the plover", "then the dunlin", "and last the sanderling"]
    place = {90: lambda n: dict(x=100, y=100+20*n), 270: lambda n: dict(x=700, y=500-20*n), 180: lambda n: dict(x=500, y=100+20*n)}[turn]
    drawn = b"".join(b"BT /F1 11 Tf %s Tm (%s) Tj ET\n" % (matrix.format(**place(n)).encode(), line.encode()) for n,line in enumerate(lines))
    pdf = Pdf()
    pdf.page(drawn, b"/Rotate %d" % turn)
    assert extract_pdf(pdf.build()).pages[0].text.strip().split("\n")==lines

def test_headings_by_outline_and_size(kb_of):
    pdf = Pdf()
    pdf.page(show(72, 760, "Operation", 20, "F2")+show(72, 720, "Text of the first part, set in the size of the body.")+show(72, 700, "More of it."))
    pdf.page(show(72, 760, "Relief valve", 14, "F2")+show(72, 730, "It opens at 6.2 bar, whatever the level is outside."))
    item = kb_of({"a.pdf": pdf.build()}).search("6.2 bar")[0]
    assert item.heading==("Operation", "Relief valve")

def test_the_example_pdf_is_reproducible():
    import make_pdfs
    from pathlib import Path
    for name,make in make_pdfs.FILES.items(): assert (Path(make_pdfs.__file__).parent/name).read_bytes()==make()==make()

def test_bold_by_drawing_twice():
    "Some writers draw a line again, a little to the right; it is one line of the page. Two lines of the same words are two"
    twice = show(72, 700, "Relief valve")+show(72.3, 700, "Relief valve")+show(72, 680, "It opens.")+show(72, 660, "It opens.")
    assert extract_pdf(one_page(twice)).pages[0].text.split("\n")[:-1]==["Relief valve", "It opens.", "It opens."]

def test_a_damaged_page_is_said(kb_of):
    pdf = Pdf()
    for n in range(3): pdf.page(show(72, 700, f"The plover of page {n} is here. {'x'*300}"))
    whole = pymupdf.open(stream=pdf.build()).tobytes(deflate=True)
    start = whole.index(b"stream\n", whole.index(b"FlateDecode"))+7
    kb = kb_of({"a.pdf": whole[:start+20]+b"\xff"*20+whole[start+40:]})
    assert any("damaged" in note.note for note in kb.report.notes) and kb.search("plover").items

def drawn(draw, **page) -> bytes:
    "A document of one page that a function draws with PyMuPDF"
    document = pymupdf.open()
    draw(document.new_page(**page))
    return document.tobytes()

def lines_of(data: bytes) -> list[str]: return extract_pdf(data).pages[0].text.split("\n")[:-1]

def test_transparent_text_in_a_colour_is_hidden():
    "Black and red, on the page and in a form that it uses; what is half transparent is seen"
    inner = pymupdf.open(stream=drawn(lambda page: (page.insert_text((72, 90), "Hidden in a form", color=(0, 0, 1), fill_opacity=0), page.insert_text((72, 120), "Shown in a form", color=(0, 0, 1)))))
    def draw(page):
        page.insert_text((72, 50), "Words of the page", color=(0, 0, 1))
        page.insert_text((72, 60), "Half red", color=(1, 0, 0), fill_opacity=0.5)
        page.insert_text((72, 70), "Hidden red", color=(1, 0, 0), fill_opacity=0)
        page.insert_text((72, 80), "Hidden black", fill_opacity=0)
        page.show_pdf_page(page.rect, inner, 0)
    assert lines_of(drawn(draw))==["Words of the page", "Half red", "Shown in a form"]

@pytest.mark.parametrize("visible,taken", [("Stamp 12", True), ("Approved travel budget: 62,300 units, as the board has said", False)])
def test_a_stamp_on_a_scan(visible, taken):
    "A stamp does not make a scanned page one with text of its own; a picture behind a page of words does not make hidden words recognised ones"
    def draw(page):
        grey = pymupdf.Pixmap(pymupdf.csGRAY, (0, 0, 60, 80), False)
        grey.clear_with(220)
        page.insert_image(page.rect, pixmap=grey)
        page.insert_text((72, 20), visible)
        for n in range(5): page.insert_text((72, 72+20*n), f"recognised words of line {n}", render_mode=3)
    assert len(lines_of(drawn(draw)))==(6 if taken else 1)

def put(page, x, top, texts, step=13, size=10):
    for n,text in enumerate(texts): page.insert_text((x, top+step*n), text, fontsize=size)

LEFT,RIGHT = [f"the left column has a line {n} of words" for n in range(12)], [f"the right column has a line {n} of words" for n in range(9)]

def test_columns_below_authors_and_above_a_figure():
    "Names stand across the gutter above an abstract; a caption crosses it below"
    def draw(page):
        put(page, 150, 40, ["A title across the whole width of the page"], size=16)
        for x,name in [(60, "Ann Author"), (260, "Ben Writer"), (460, "Cy Scholar")]: put(page, x, 70, [name, "Some Institute", "Some Town"])
        put(page, 60, 200, LEFT)
        put(page, 320, 203, RIGHT)
        put(page, 60, 420, ["Figure 1: a caption of the figure above, so long that it runs over both of the columns of it"])
        put(page, 60, 450, LEFT[:6])
        put(page, 320, 450, RIGHT[:6])
    assert lines_of(drawn(draw))[4:]==[*LEFT, *RIGHT, "Figure 1: a caption of the figure above, so long that it runs over both of the columns of it", *LEFT[:6], *RIGHT[:6]]

def test_running_titles_over_columns():
    def draw(page):
        put(page, 60, 30, ["Proceedings of the group"])
        put(page, 400, 30, ["Author and Writer"])
        put(page, 60, 70, LEFT)
        put(page, 320, 70, RIGHT)
        put(page, 60, 400, ["Footnote"])
        put(page, 500, 400, ["17"])
    assert lines_of(drawn(draw))==["Proceedings of the group  Author and Writer", *LEFT, *RIGHT, "Footnote  17"]

def test_a_table_in_one_of_two_columns():
    table = ["Style  12 pt  bold", "Title  14 pt  plain", "Note  8 pt  slanted", "Code  9 pt  fixed"]
    def draw(page):
        put(page, 60, 70, LEFT)
        put(page, 320, 70, RIGHT[:6])
        for n,row in enumerate(table):
            for x,cell in zip([320, 400, 480], row.split("  ")): put(page, x, 170+15*n, [cell])
    assert lines_of(drawn(draw))==[*LEFT, *RIGHT[:6], *table]

def test_turned_text_and_text_set_downward():
    "A wide table on an upright page, and Japanese columns from right to left"
    def draw(page):
        put(page, 60, 40, ["Upright"])
        for n,text in enumerate(["first turned line", "second turned line"]): page.insert_text((100+20*n, 600), text, rotate=90)
        for n,text in enumerate(["first downward line", "second downward line"]): page.insert_text((400-20*n, 300), text, rotate=270)
    assert lines_of(drawn(draw))==["Upright", "first downward line", "second downward line", "first turned line", "second turned line"]

def test_hebrew_in_reading_order():
    def draw(page): page.insert_htmlbox((40, 40, 300, 300), "<p dir='rtl' style='font-size:14px'>שלום עולם זהו טקסט ארוך מאוד שנשבר לשתי שורות לפחות כדי לראות את הסדר 123 abc סוף</p>")
    assert " ".join(" ".join(lines_of(drawn(draw))).split())=="שלום עולם זהו טקסט ארוך מאוד שנשבר לשתי שורות לפחות כדי לראות את הסדר 123 abc סוף"

def test_values_of_a_form(kb_of):
    "What a reader sees of fields: texts, choices, ticks with their names; not a password, not a hidden field; with and without pictures of the values"
    def draw(page):
        for n,(kind,name,value,more) in enumerate([("TEXT", "Surname", "Holmberg", {}), ("TEXT", "Notes", "first line\nsecond line of the note", dict(field_flags=pymupdf.PDF_TX_FIELD_IS_MULTILINE)), ("COMBOBOX", "Colour", "Teal", dict(choice_values=["Red", "Teal"])),
                ("CHECKBOX", "Smoker", True, {}), ("CHECKBOX", "Diver", False, {}), ("TEXT", "Secret", "hunter2", dict(field_flags=pymupdf.PDF_TX_FIELD_IS_PASSWORD)), ("TEXT", "Gone", "unseen", dict(field_display=1))]):
            field = pymupdf.Widget()
            field.field_type,field.field_name,field.field_value,field.rect = getattr(pymupdf, f"PDF_WIDGET_TYPE_{kind}"), name, value, pymupdf.Rect(200, 60+40*n, 400, 78+40*n)
            for key,setting in more.items(): setattr(field, key, setting)
            page.insert_text((60, 72+40*n), f"{name}:")
            page.add_widget(field)
    data = drawn(draw)
    expected = ["Surname:  Holmberg", "Notes:  first line second line of the note", "Colour:  Teal", "Smoker:  \u2612 Smoker", "Diver:", "Secret:", "Gone:"]
    assert lines_of(data)==expected
    with pymupdf.open(stream=data) as document:
        for field in document[0].widgets(): document.xref_set_key(field.xref, "AP", "null")
        assert lines_of(document.tobytes())==expected
    kb = kb_of({"form.pdf": data})
    assert kb.search("second line of the note").items and not kb.search("hunter2").items and kb.resolve(kb.search("Holmberg")[0]).holds

def test_labels_are_those_of_the_document():
    "Roman, with a prefix, in letters, and none where the label is the position"
    with pymupdf.open() as document:
        for n in range(9): document.new_page().insert_text((72, 72), f"page {n}")
        document.set_page_labels([dict(startpage=0, style="r", prefix="", firstpagenum=3), dict(startpage=3, style="D", prefix="A-", firstpagenum=1), dict(startpage=5, style="A", prefix="", firstpagenum=27), dict(startpage=7, style="D", prefix="", firstpagenum=8)])
        assert [page.label for page in extract_pdf(document.tobytes()).pages]==["iii", "iv", "v", "A-1", "A-2", "AA", "BB", None, None] # ISO 32000-1, table 159

def test_text_that_looks_like_markup():
    "Signs of the forms in which MuPDF prints a page are words of the page like others"
    texts = ['<p style="top:1pt;left:1pt;line-height:99.0pt">', '<line bbox="0 0 1 1" wmode="0" dir="1 0" flags="0" text="x"/>', "a &amp; b &#65; &lt; \xe9", 'font-size:0.5pt">']
    assert lines_of(drawn(lambda page: put(page, 72, 72, texts)))==texts

def test_a_heading_below_two_columns_belongs_to_what_follows():
    root = Path(__file__).resolve().parents[1]/"fixtures/world/docs/sheets"
    for name in ("pump-ap40.pdf", "pump-ap45.pdf"):
        lines = extract(name, (root/name).read_bytes(), Limits()).pages[1].text.split("\n")
        at = lines.index("Casing")
        assert lines[at-1]=="every second year." and lines[at+1].startswith("The casing is of")
