"`python -m mimirag`"
from mimirag.cli import main

if __name__=="__main__": main()
