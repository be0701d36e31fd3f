"""The tools around both languages: their commands, the studio, the language server, highlighting.

Modules:

* `start`: The start of both commands: interrupts while modules are imported, and settings of the whole process.
* `command/`: The common part of both commands: errors and exit codes, options, formats, tables, progress.
* `studio/`: The page of `studio`, its server and the processes that check and run queries.
* `lsp/`: The language server: errors, hover and completion in editors.
* `highlight`: Lexers for Pygments and grammars for editors.
* `kernels`: Compile kernels ahead, for this kind of processor.
"""
