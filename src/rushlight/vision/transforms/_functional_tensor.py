"""Functions on images in tensors (..., C, H, W)."""

from ._tensor_base import convert_image_dtype as convert_image_dtype
from ._tensor_base import get_dimensions as get_dimensions
from ._tensor_base import get_image_num_channels as get_image_num_channels
from ._tensor_base import get_image_size as get_image_size
from ._tensor_base import is_tensor_a_torch_image as _is_tensor_a_torch_image  # noqa: F401
from ._tensor_base import max_value as _max_value  # noqa: F401
from ._tensor_color import _hsv as _rgb2hsv  # noqa: F401
from ._tensor_color import _rgb as _hsv2rgb  # noqa: F401
from ._tensor_color import adjust_brightness as adjust_brightness
from ._tensor_color import adjust_contrast as adjust_contrast
from ._tensor_color import adjust_gamma as adjust_gamma
from ._tensor_color import adjust_hue as adjust_hue
from ._tensor_color import adjust_saturation as adjust_saturation
from ._tensor_color import adjust_sharpness as adjust_sharpness
from ._tensor_color import autocontrast as autocontrast
from ._tensor_color import equalize as equalize
from ._tensor_color import invert as invert
from ._tensor_color import posterize as posterize
from ._tensor_color import rgb_to_grayscale as rgb_to_grayscale
from ._tensor_color import solarize as solarize
from ._tensor_geometry import affine as affine
from ._tensor_geometry import crop as crop
from ._tensor_geometry import elastic_transform as elastic_transform
from ._tensor_geometry import erase as erase
from ._tensor_geometry import gaussian_blur as gaussian_blur
from ._tensor_geometry import hflip as hflip
from ._tensor_geometry import normalize as normalize
from ._tensor_geometry import pad as pad
from ._tensor_geometry import perspective as perspective
from ._tensor_geometry import resize as resize
from ._tensor_geometry import rotate as rotate
from ._tensor_geometry import vflip as vflip
