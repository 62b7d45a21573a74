"""The files of trained weights that PyTorch's server has: a line is a model, its name in enumerations, and for each version the
file (without .pth) and, where they are not 224 256 bilinear, the crop, the resized edge and the interpolation.
"""

from __future__ import annotations

from typing import Any

HOST = "https://download.pytorch.org/models/"
_CLASSES = "https://raw.githubusercontent.com/pytorch/hub/master/imagenet_classes.txt"
_VOC = (
    "__background__ aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
)

# COCO's ids have gaps.
_COCO = (
    "__background__,person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,N/A,stop sign,"
    "parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,N/A,backpack,umbrella,N/A,N/A,handbag,tie,"
    "suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,"
    "N/A,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,"
    "couch,potted plant,bed,N/A,dining table,N/A,N/A,toilet,N/A,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,"
    "toaster,sink,refrigerator,N/A,book,clock,vase,scissors,teddy bear,hair drier,toothbrush"
)
_CLASSIFIERS = """
alexnet AlexNet | V1 alexnet-owt-7be5be79
convnext_base ConvNeXt_Base | V1 convnext_base-6075fbad 224 232
convnext_large ConvNeXt_Large | V1 convnext_large-ea097f82 224 232
convnext_small ConvNeXt_Small | V1 convnext_small-0c510722 224 230
convnext_tiny ConvNeXt_Tiny | V1 convnext_tiny-983f1562 224 236
densenet121 DenseNet121 | V1 densenet121-a639ec97
densenet161 DenseNet161 | V1 densenet161-8d451a50
densenet169 DenseNet169 | V1 densenet169-b2777c0a
densenet201 DenseNet201 | V1 densenet201-c1103571
efficientnet_b0 EfficientNet_B0 | V1 efficientnet_b0_rwightman-7f5810bc 224 256 bicubic
efficientnet_b1 EfficientNet_B1 | V1 efficientnet_b1_rwightman-bac287d4 240 256 bicubic | V2 efficientnet_b1-c27df63c 240 255
efficientnet_b2 EfficientNet_B2 | V1 efficientnet_b2_rwightman-c35c1473 288 288 bicubic
efficientnet_b3 EfficientNet_B3 | V1 efficientnet_b3_rwightman-b3899882 300 320 bicubic
efficientnet_b4 EfficientNet_B4 | V1 efficientnet_b4_rwightman-23ab8bcd 380 384 bicubic
efficientnet_b5 EfficientNet_B5 | V1 efficientnet_b5_lukemelas-1a07897c 456 456 bicubic
efficientnet_b6 EfficientNet_B6 | V1 efficientnet_b6_lukemelas-24a108a5 528 528 bicubic
efficientnet_b7 EfficientNet_B7 | V1 efficientnet_b7_lukemelas-c5b4e57e 600 600 bicubic
efficientnet_v2_l EfficientNet_V2_L | V1 efficientnet_v2_l-59c71312 480 480 bicubic
efficientnet_v2_m EfficientNet_V2_M | V1 efficientnet_v2_m-dc08266a 480 480
efficientnet_v2_s EfficientNet_V2_S | V1 efficientnet_v2_s-dd5fe13b 384 384
googlenet GoogLeNet | V1 googlenet-1378be20
inception_v3 Inception_V3 | V1 inception_v3_google-0cc3c7bd 299 342
maxvit_t MaxVit_T | V1 maxvit_t-bc5ab103 224 224 bicubic
mnasnet0_5 MNASNet0_5 | V1 mnasnet0.5_top1_67.823-3ffadce67e
mnasnet0_75 MNASNet0_75 | V1 mnasnet0_75-7090bc5f 224 232
mnasnet1_0 MNASNet1_0 | V1 mnasnet1.0_top1_73.512-f206786ef8
mnasnet1_3 MNASNet1_3 | V1 mnasnet1_3-a4c69d6f 224 232
mobilenet_v2 MobileNet_V2 | V1 mobilenet_v2-b0353104 | V2 mobilenet_v2-7ebf99e0 224 232
mobilenet_v3_large MobileNet_V3_Large | V1 mobilenet_v3_large-8738ca79 | V2 mobilenet_v3_large-5c1a4163 224 232
mobilenet_v3_small MobileNet_V3_Small | V1 mobilenet_v3_small-047dcff4
regnet_x_16gf RegNet_X_16GF | V1 regnet_x_16gf-2007eb11 | V2 regnet_x_16gf-ba3796d7 224 232
regnet_x_1_6gf RegNet_X_1_6GF | V1 regnet_x_1_6gf-e3633e7f | V2 regnet_x_1_6gf-a12f2b72 224 232
regnet_x_32gf RegNet_X_32GF | V1 regnet_x_32gf-9d47f8d0 | V2 regnet_x_32gf-6eb8fdc6 224 232
regnet_x_3_2gf RegNet_X_3_2GF | V1 regnet_x_3_2gf-f342aeae | V2 regnet_x_3_2gf-7071aa85 224 232
regnet_x_400mf RegNet_X_400MF | V1 regnet_x_400mf-adf1edd5 | V2 regnet_x_400mf-62229a5f 224 232
regnet_x_800mf RegNet_X_800MF | V1 regnet_x_800mf-ad17e45c | V2 regnet_x_800mf-94a99ebd 224 232
regnet_x_8gf RegNet_X_8GF | V1 regnet_x_8gf-03ceed89 | V2 regnet_x_8gf-2b70d774 224 232
regnet_y_128gf RegNet_Y_128GF | SWAG_E2E_V1 regnet_y_128gf_swag-c8ce3e52 384 384 bicubic | SWAG_LINEAR_V1 regnet_y_128gf_lc_swag-cbe8ce12 224 224 bicubic
regnet_y_16gf RegNet_Y_16GF | V1 regnet_y_16gf-9e6ed7dd | V2 regnet_y_16gf-3e4a00f9 224 232 | SWAG_E2E_V1 regnet_y_16gf_swag-43afe44d 384 384 bicubic | SWAG_LINEAR_V1 regnet_y_16gf_lc_swag-f3ec0043 224 224 bicubic
regnet_y_1_6gf RegNet_Y_1_6GF | V1 regnet_y_1_6gf-b11a554e | V2 regnet_y_1_6gf-0d7bc02a 224 232
regnet_y_32gf RegNet_Y_32GF | V1 regnet_y_32gf-4dee3f7a | V2 regnet_y_32gf-8db6d4b5 224 232 | SWAG_E2E_V1 regnet_y_32gf_swag-04fdfa75 384 384 bicubic | SWAG_LINEAR_V1 regnet_y_32gf_lc_swag-e1583746 224 224 bicubic
regnet_y_3_2gf RegNet_Y_3_2GF | V1 regnet_y_3_2gf-b5a9779c | V2 regnet_y_3_2gf-9180c971 224 232
regnet_y_400mf RegNet_Y_400MF | V1 regnet_y_400mf-c65dace8 | V2 regnet_y_400mf-e6988f5f 224 232
regnet_y_800mf RegNet_Y_800MF | V1 regnet_y_800mf-1b27b58c | V2 regnet_y_800mf-58fc7688 224 232
regnet_y_8gf RegNet_Y_8GF | V1 regnet_y_8gf-d0d0e4a8 | V2 regnet_y_8gf-dc2b1b54 224 232
resnet101 ResNet101 | V1 resnet101-63fe2227 | V2 resnet101-cd907fc2 224 232
resnet152 ResNet152 | V1 resnet152-394f9c45 | V2 resnet152-f82ba261 224 232
resnet18 ResNet18 | V1 resnet18-f37072fd
resnet34 ResNet34 | V1 resnet34-b627a593
resnet50 ResNet50 | V1 resnet50-0676ba61 | V2 resnet50-11ad3fa6 224 232
resnext101_32x8d ResNeXt101_32X8D | V1 resnext101_32x8d-8ba56ff5 | V2 resnext101_32x8d-110c445d 224 232
resnext101_64x4d ResNeXt101_64X4D | V1 resnext101_64x4d-173b62eb 224 232
resnext50_32x4d ResNeXt50_32X4D | V1 resnext50_32x4d-7cdf4587 | V2 resnext50_32x4d-1a0047aa 224 232
shufflenet_v2_x0_5 ShuffleNet_V2_X0_5 | V1 shufflenetv2_x0.5-f707e7126e
shufflenet_v2_x1_0 ShuffleNet_V2_X1_0 | V1 shufflenetv2_x1-5666bf0f80
shufflenet_v2_x1_5 ShuffleNet_V2_X1_5 | V1 shufflenetv2_x1_5-3c479a10 224 232
shufflenet_v2_x2_0 ShuffleNet_V2_X2_0 | V1 shufflenetv2_x2_0-8be3c8ee 224 232
squeezenet1_0 SqueezeNet1_0 | V1 squeezenet1_0-b66bff10
squeezenet1_1 SqueezeNet1_1 | V1 squeezenet1_1-b8a52dc0
swin_b Swin_B | V1 swin_b-68c6b09e 224 238 bicubic
swin_s Swin_S | V1 swin_s-5e29d889 224 246 bicubic
swin_t Swin_T | V1 swin_t-704ceda3 224 232 bicubic
swin_v2_b Swin_V2_B | V1 swin_v2_b-781e5279 256 272 bicubic
swin_v2_s Swin_V2_S | V1 swin_v2_s-637d8ceb 256 260 bicubic
swin_v2_t Swin_V2_T | V1 swin_v2_t-b137f0e2 256 260 bicubic
vgg11 VGG11 | V1 vgg11-8a719046
vgg11_bn VGG11_BN | V1 vgg11_bn-6002323d
vgg13 VGG13 | V1 vgg13-19584684
vgg13_bn VGG13_BN | V1 vgg13_bn-abd245e5
vgg16 VGG16 | V1 vgg16-397923af | FEATURES vgg16_features-amdegroot-88682ab5
vgg16_bn VGG16_BN | V1 vgg16_bn-6c64b313
vgg19 VGG19 | V1 vgg19-dcbb9e9d
vgg19_bn VGG19_BN | V1 vgg19_bn-c79401a0
vit_b_16 ViT_B_16 | V1 vit_b_16-c867db91 | SWAG_E2E_V1 vit_b_16_swag-9ac1b537 384 384 bicubic | SWAG_LINEAR_V1 vit_b_16_lc_swag-4e70ced5 224 224 bicubic
vit_b_32 ViT_B_32 | V1 vit_b_32-d86f8d99
vit_h_14 ViT_H_14 | SWAG_E2E_V1 vit_h_14_swag-80465313 518 518 bicubic | SWAG_LINEAR_V1 vit_h_14_lc_swag-c1eb923e 224 224 bicubic
vit_l_16 ViT_L_16 | V1 vit_l_16-852ce7e3 224 242 | SWAG_E2E_V1 vit_l_16_swag-4f3808c9 512 512 bicubic | SWAG_LINEAR_V1 vit_l_16_lc_swag-4d563306 224 224 bicubic
vit_l_32 ViT_L_32 | V1 vit_l_32-c7638314
wide_resnet101_2 Wide_ResNet101_2 | V1 wide_resnet101_2-32ee1156 | V2 wide_resnet101_2-d733dc28 224 232
wide_resnet50_2 Wide_ResNet50_2 | V1 wide_resnet50_2-95faca4d | V2 wide_resnet50_2-9ba9bcbe 224 232
"""
_SEGMENTERS = """
deeplabv3_mobilenet_v3_large DeepLabV3_MobileNet_V3_Large | V1 deeplabv3_mobilenet_v3_large-fc3c493d
deeplabv3_resnet101 DeepLabV3_ResNet101 | V1 deeplabv3_resnet101_coco-586e9e4e
deeplabv3_resnet50 DeepLabV3_ResNet50 | V1 deeplabv3_resnet50_coco-cd0a2569
fcn_resnet101 FCN_ResNet101 | V1 fcn_resnet101_coco-7ecb50ca
fcn_resnet50 FCN_ResNet50 | V1 fcn_resnet50_coco-1167a1af
lraspp_mobilenet_v3_large LRASPP_MobileNet_V3_Large | V1 lraspp_mobilenet_v3_large-d234d4ea
"""
_DETECTORS = """
fasterrcnn_mobilenet_v3_large_320_fpn FasterRCNN_MobileNet_V3_Large_320_FPN | V1 fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9
fasterrcnn_mobilenet_v3_large_fpn FasterRCNN_MobileNet_V3_Large_FPN | V1 fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7
fasterrcnn_resnet50_fpn FasterRCNN_ResNet50_FPN | V1 fasterrcnn_resnet50_fpn_coco-258fb6c6
fasterrcnn_resnet50_fpn_v2 FasterRCNN_ResNet50_FPN_V2 | V1 fasterrcnn_resnet50_fpn_v2_coco-dd69338a
fcos_resnet50_fpn FCOS_ResNet50_FPN | V1 fcos_resnet50_fpn_coco-99b0c9b7
maskrcnn_resnet50_fpn MaskRCNN_ResNet50_FPN | V1 maskrcnn_resnet50_fpn_coco-bf2d0c1e
maskrcnn_resnet50_fpn_v2 MaskRCNN_ResNet50_FPN_V2 | V1 maskrcnn_resnet50_fpn_v2_coco-73cbd019
retinanet_resnet50_fpn RetinaNet_ResNet50_FPN | V1 retinanet_resnet50_fpn_coco-eeacb38b
retinanet_resnet50_fpn_v2 RetinaNet_ResNet50_FPN_V2 | V1 retinanet_resnet50_fpn_v2_coco-5905b1c5
ssd300_vgg16 SSD300_VGG16 | V1 ssd300_vgg16_coco-b556d3b4
ssdlite320_mobilenet_v3_large SSDLite320_MobileNet_V3_Large | V1 ssdlite320_mobilenet_v3_large_coco-a79551df
"""
_KEYPOINTS = (
    "nose,left_eye,right_eye,left_ear,right_ear,left_shoulder,right_shoulder,left_elbow,right_elbow,left_wrist,right_wrist,"
    "left_hip,right_hip,left_knee,right_knee,left_ankle,right_ankle"
)
# model, name in enumerations, versions (file), crop, resized edge or edges
_VIDEOS = """
mc3_18 MC3_18 | KINETICS400_V1 mc3_18-a90a0ba3 112 128 171
mvit_v1_b MViT_V1_B | KINETICS400_V1 mvit_v1_b-dbeb1030 224 256
mvit_v2_s MViT_V2_S | KINETICS400_V1 mvit_v2_s-ae3be167 224 256
r2plus1d_18 R2Plus1D_18 | KINETICS400_V1 r2plus1d_18-91a641e6 112 128 171
r3d_18 R3D_18 | KINETICS400_V1 r3d_18-b3b3357e 112 128 171
s3d S3D | KINETICS400_V1 s3d-d76dad2f 224 256 256
swin3d_b Swin3D_B | KINETICS400_V1 swin3d_b_1k-24f7c7c6 224 256 | KINETICS400_IMAGENET22K_V1 swin3d_b_22k-7c6ae6fa 224 256
swin3d_s Swin3D_S | KINETICS400_V1 swin3d_s-da41c237 224 256
swin3d_t Swin3D_T | KINETICS400_V1 swin3d_t-7615ae03 224 256
"""
_FLOWS = """
raft_large Raft_Large | C_T_V1 raft_large_C_T_V1-22a6c225 | C_T_V2 raft_large_C_T_V2-1bb1363a | C_T_SKHT_V1 raft_large_C_T_SKHT_V1-0b8c9e55 | C_T_SKHT_K_V1 raft_large_C_T_SKHT_K_V1-4a6a5039 | C_T_SKHT_K_V2 raft_large_C_T_SKHT_K_V2-b5c70766 | C_T_SKHT_V2 raft_large_C_T_SKHT_V2-ff5fadd5
raft_small Raft_Small | C_T_V1 raft_small_C_T_V1-ad48884c | C_T_V2 raft_small_C_T_V2-01064c6d
"""
# Weights whose training normalized images otherwise: mean, deviation.
_NORMALIZED = {
    "efficientnet_v2_l-59c71312": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    **dict.fromkeys(("mvit_v1_b-dbeb1030", "mvit_v2_s-ae3be167"), ((0.45,) * 3, (0.225,) * 3)),
    **dict.fromkeys(
        ("swin3d_b_1k-24f7c7c6", "swin3d_b_22k-7c6ae6fa", "swin3d_s-da41c237", "swin3d_t-7615ae03"),
        ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ),
    "vgg16_features-amdegroot-88682ab5": (
        (0.48235, 0.45882, 0.40784),
        (1.0 / 255.0, 1.0 / 255.0, 1.0 / 255.0),
    ),
}


def _line(table: Any, model: Any) -> tuple[Any, list[Any]] | None:
    for line in table.strip().splitlines():
        head, *versions = line.split(" | ")
        name, kind = head.split()
        if name == model:
            return kind + "_Weights", versions
    return None


def rows(
    model: Any,
) -> (
    tuple[Any, list[tuple[Any, Any, str, dict[str, Any], dict[Any, Any]]]]
    | tuple[Any, list[tuple[Any, Any, str, dict[str, Any], dict[str, int]]]]
    | tuple[Any, list[tuple[Any, Any, str, dict[Any, Any], dict[Any, Any]]]]
    | tuple[str, list[tuple[str, str, str, dict[Any, Any], dict[str, Any]]]]
    | tuple[Any, list[tuple[str, Any, str, dict[Any, Any], dict[str, Any]]]]
    | tuple[Any, list[tuple[str, Any, str, dict[str, int], dict[str, Any]]]]
):
    """(name of the enumeration, [(version, file, preset, its options, what is known)])"""
    found = _line(_CLASSIFIERS, model)
    if found:
        return found[0], [_classifier(*version.split()) for version in found[1]]
    found = _line(_VIDEOS, model)
    if found:
        return found[0], [_video(*version.split()) for version in found[1]]
    found = _line(_FLOWS, model)
    if found:
        files = [version.split() for version in found[1]]
        return found[0], [(name, file + ".pth", "OpticalFlow", {}, {}) for name, file in files]
    if model == "keypointrcnn_resnet50_fpn":
        known = {
            "categories": ["no person", "person"],
            "keypoint_names": _KEYPOINTS.split(","),
            "num_classes": 2,
        }
        files = (("COCO_LEGACY", "9f466800"), ("COCO_V1", "fc266e95"))
        return "KeypointRCNN_ResNet50_FPN_Weights", [
            (name, f"keypointrcnn_resnet50_fpn_coco-{mark}.pth", "ObjectDetection", {}, known)
            for name, mark in files
        ]
    found = _line(_DETECTORS, model)
    if found:
        file = found[1][0].split()[1]
        return found[0], [
            (
                "COCO_V1",
                file + ".pth",
                "ObjectDetection",
                {},
                {"categories": _COCO.split(","), "num_classes": 91},
            )
        ]
    found = _line(_SEGMENTERS, model)
    if found is None:
        raise KeyError(model)
    known = {"categories": _VOC.split(), "num_classes": 21}
    files = [version.split()[1] for version in found[1]]
    return found[0], [
        ("COCO_WITH_VOC_LABELS_V1", f + ".pth", "SemanticSegmentation", {"resize_size": 520}, known)
        for f in files
    ]


def _video(
    version: Any, file: Any, crop: Any, *edges: Any
) -> tuple[Any, Any, str, dict[str, Any], dict[str, int]]:
    options: dict[str, Any] = {"crop_size": (int(crop), int(crop)), "resize_size": tuple(map(int, edges))}
    if file in _NORMALIZED:
        options["mean"], options["std"] = _NORMALIZED[file]
    return version, file + ".pth", "VideoClassification", options, {"num_classes": 400}


def _classifier(
    version: Any, file: Any, crop: int = 224, resize: int = 256, interpolation: str = "bilinear"
) -> tuple[Any, Any, str, dict[str, Any], dict[Any, Any]]:
    options = {"crop_size": int(crop), "resize_size": int(resize), "interpolation": interpolation}
    if file in _NORMALIZED:
        options["mean"], options["std"] = _NORMALIZED[file]
    return "IMAGENET1K_" + version, file + ".pth", "ImageClassification", options, {}


def imagenet_categories() -> list[str]:
    """The names of ImageNet's 1000 classes, from the cache of rushlight.hub or the network."""
    import os

    from rushlight import hub

    path = os.path.join(hub.get_dir(), "imagenet_classes.txt")
    if not os.path.exists(path):
        os.makedirs(hub.get_dir(), exist_ok=True)
        hub.download_url_to_file(_CLASSES, path, progress=False)
    with open(path) as f:
        return [line.strip() for line in f if line.strip()]
