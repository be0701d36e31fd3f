"""Text to syntax tree and back.

`parse` reads text by `grammar.lark` into the nodes of `ast`; if it cannot, `diagnostics` words the error. `printer`
writes a tree as text that parses to an equal tree; `walk` visits the parts of expressions for all later rooms.

* `ast`: The syntax tree of CEQL: frozen, slotted, and independent of the evaluation of a query.
* `parse`: Text to syntax tree. Lark is used in this module and in `diagnostics` alone.
* `sequences`: Sequences as they are parsed: a NOT beside a part, and NOTs beside one another, in one form each.
* `diagnostics`: Turns a failure of the parser into one clear `QuerySyntaxError`.
* `printer`: Syntax tree to text. Parsing the text gives an equal tree, with as few parentheses as that takes.
* `walk`: The parts of an expression, and copies of an expression with some of its parts replaced.
"""
