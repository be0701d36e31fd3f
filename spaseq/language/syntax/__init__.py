"""Text to syntax tree and back.

`scan` cuts the embedded SPARQL out, `parse` reads the rest by `grammar.lark` into the nodes of `ast`, `printer` writes
a tree as a query.

* `ast`: The syntax tree of SPAseq: frozen, slotted, each node with the span of its text.
* `scan`: Cuts the embedded SPARQL out of a SPAseq query, before it is parsed.
* `parse`: SPAseq text to syntax tree. The lark tree never leaves this module.
* `printer`: Prints a syntax tree as a SPAseq query; parsing the text gives an equal tree.
"""
