"""Joints: what holds bodies together and drives them. Plain descriptions and arrays, and nothing of an engine.

``kinds`` and ``drives`` are what users write; ``anchoring`` fits a joint into its bodies; ``rows`` names the arrays that engines
work on; ``mechanism`` fills them with the joints of a scene; ``table`` is what users see of them.
"""
