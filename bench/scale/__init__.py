"""What a thousand nodes and ten terabytes would do to the design: a model whose costs are measured here.

`python -m bench.scale.measure` writes constants.json, `python -m bench.scale` prints the tables and draws wall.svg.
README.md has the paper side.
"""
