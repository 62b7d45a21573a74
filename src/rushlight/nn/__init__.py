from . import parameter, modules
