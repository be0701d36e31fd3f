"""Files by their names: the file systems they are in, and how they are written.

* `places`: The file systems of files: this machine's, or one that only Spark's libraries read.
* `beside`: Output files, each written beside its place and then renamed: a name stands for a whole file.
"""
