"""What a scene is described with beside shapes and joints: materials, prescribed motion, periodic cells, servo plates."""
