"""Contacts with meshes, compiled for the CPU: see ``gravel.formulas.meshes``."""

from gravel.formulas import meshes
from gravel.formulas.meshes import Meshes
from gravel.host.formulas import FORMS

_meshes = FORMS.of(meshes)
collect, mesh_mesh, sphere_mesh, thin_out_by_normal = _meshes.collect, _meshes.mesh_mesh, _meshes.sphere_mesh, _meshes.thin_out_by_normal


def meshes_of(library):
    """The meshes of a library."""
    return Meshes(*(getattr(library, name) for name in Meshes._fields))
