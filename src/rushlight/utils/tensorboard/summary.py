"""Values as TensorBoard's protocol messages."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

import rushlight as rl


def to_numpy(x: Any) -> Any:
    """A tensor, an array, a number or a list of them as an array."""
    if isinstance(x, (list, tuple)):
        return np.array([to_numpy(item) for item in x])
    if not isinstance(x, rl.Tensor):
        return np.asarray(x)
    x = x.detach()
    return (x.float() if x.dtype == rl.bfloat16 else x).numpy()  # NumPy has no bfloat16


def scalar(name: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    array = to_numpy(value)
    if array.size != 1:
        raise ValueError(f"add_scalar: {name} must be one number, got shape {tuple(array.shape)}")
    number = float(array.reshape(-1)[0])
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    kind, field = ("DT_DOUBLE", "double_val") if double_precision else ("DT_FLOAT", "float_val")
    tensor = TensorProto(dtype=kind, **{field: [number]})
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=name, tensor=tensor, metadata=metadata)])


def default_bins() -> Any:
    """Edges that grow by a tenth, on both sides of zero."""
    up = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-up[::-1], [0.0], up])


def histogram(name: str, values: Any, bins: Any, max_bins: Any = None) -> Any:
    values = to_numpy(values).astype(np.float64).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(
        values, bins=default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    )
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        edges = np.concatenate([edges[:-1:step], edges[-1:]])
    used = np.nonzero(counts)[0]
    if not used.size:
        raise ValueError("The histogram is empty: no value lies in its bins")
    first, last = used[0], used[-1]
    limits = edges[first + 1 : last + 2]
    bucket = counts[first : last + 1]
    # a bucket of nothing before the first tells where that one begins
    limits, bucket = np.concatenate([[edges[first]], limits]), np.concatenate([[0], bucket])
    message = HistogramProto(
        min=values.min(), max=values.max(), num=values.size, sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=limits.tolist(), bucket=bucket.tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=message)])


def histogram_raw(
    name: str,
    min: Any,
    max: Any,
    num: Any,
    sum: Any,
    sum_squares: Any,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    moments = {"num": num, "sum": sum, "sum_squares": sum_squares}
    message = HistogramProto(bucket_limit=bucket_limits, bucket=bucket_counts, min=min, max=max, **moments)
    return Summary(value=[Summary.Value(tag=name, histo=message)])


def to_hwc(array: Any, dataformats: Any) -> Any:
    """An image or a batch of images as (height, width, channel); a batch becomes a grid."""
    formats = dataformats.upper()
    if len(set(formats)) != len(formats) or len(formats) != array.ndim:
        raise ValueError(
            f"the array has {array.ndim} dimensions, dataformats={dataformats!r} names {len(formats)}"
        )
    if formats == "HW":
        return np.repeat(array[:, :, None], 3, 2)
    if "N" in formats:
        batch = array.transpose([formats.index(c) for c in "NHWC"])
        n, h, w, c = batch.shape
        columns = min(n, 8)
        rows = -(-n // columns)
        grid = np.zeros((rows * h, columns * w, c), batch.dtype)
        for i in range(n):
            y, x = i // columns * h, i % columns * w
            grid[y : y + h, x : x + w] = batch[i]
        array = grid
    else:
        array = array.transpose([formats.index(c) for c in "HWC"])
    return np.repeat(array, 3, 2) if array.shape[2] == 1 else array


def _bytes_of(array: Any) -> Any:
    """Floats of 0..1 become bytes of 0..255; bytes stay."""
    scale = 255.0 if array.dtype.kind == "f" else 1.0
    return np.clip(array.astype(np.float64) * scale, 0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: int = 1, dataformats: str = "NCHW") -> Any:
    from PIL import Image

    array = _bytes_of(to_hwc(to_numpy(tensor), dataformats))
    height, width, channels = array.shape
    image = Image.fromarray(array)
    if rescale != 1:
        image = image.resize((int(width * rescale), int(height * rescale)))
    out = io.BytesIO()
    image.save(out, format="PNG")
    message = Summary.Image(
        height=image.height, width=image.width, colorspace=channels, encoded_image_string=out.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=message)])


def video(tag: str, tensor: Any, fps: int = 4) -> Any:
    from PIL import Image

    array = to_numpy(tensor)
    if array.ndim != 5:
        raise ValueError(f"add_video: expected (N, T, C, H, W), got shape {tuple(array.shape)}")
    if array.shape[1] == 0 or array.shape[0] == 0:
        raise ValueError("add_video: there is no frame to show")
    grids = [_bytes_of(to_hwc(array[:, t], "NCHW")) for t in range(array.shape[1])]
    frames = [Image.fromarray(grid) for grid in grids]
    out = io.BytesIO()
    duration = 1000 / fps  # milliseconds
    frames[0].save(out, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    height, width, channels = grids[0].shape
    message = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=message)])


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None) -> Any:
    import json

    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    kinds = MeshPluginData.ContentType
    parts = [(kinds.Value("VERTEX"), vertices), (kinds.Value("FACE"), faces), (kinds.Value("COLOR"), colors)]
    parts = [(kind, to_numpy(part)) for kind, part in parts if part is not None]
    for _, array in parts:
        if array.ndim != 3 or array.shape[2] != 3:
            raise ValueError(f"add_mesh: expected (N, count, 3), got shape {tuple(array.shape)}")
    components = metadata.get_components_bitmask([kind for kind, _ in parts])
    values = []
    for kind, array in parts:
        sizes = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
        flat = array.astype(np.float32).reshape(-1).tolist()
        about = metadata.create_summary_metadata(
            tag, tag, kind, components, array.shape, json_config=json.dumps(config_dict or {}, sort_keys=True)
        )
        values.append(
            Summary.Value(
                tag=metadata.get_instance_name(tag, kind),
                tensor=TensorProto(dtype="DT_FLOAT", float_val=flat, tensor_shape=sizes),
                metadata=about,
            )
        )
    return Summary(value=values)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    import wave

    array = to_numpy(tensor).squeeze()
    if array.ndim != 1:
        raise ValueError(f"add_audio: the sound must be one row, got shape {tuple(array.shape)}")
    samples = (np.clip(array, -1, 1) * np.iinfo(np.int16).max).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(sample_rate)
        f.writeframes(samples.tobytes())
    message = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=message)])


def _tensor_summary(tag: str, plugin: Any, content: Any, tensor: Any) -> Any:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def text(tag: str, value: Any) -> Any:
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    tensor = TensorProto(
        dtype="DT_STRING",
        string_val=[value.encode()],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    return _tensor_summary(
        tag + "/text_summary", "text", TextPluginData(version=0).SerializeToString(), tensor
    )


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall at thresholds from 0 to 1."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    count = min(num_thresholds, 127)
    truth, scores = to_numpy(labels).reshape(-1) > 0, to_numpy(predictions).reshape(-1)
    weight = np.ones(truth.shape) if weights is None else to_numpy(weights).reshape(-1)
    bucket = np.floor(scores * (count - 1)).astype(np.int64).clip(0, count - 1)
    hits = np.bincount(bucket, truth * weight, count)[::-1].cumsum()[::-1]
    misses = np.bincount(bucket, ~truth * weight, count)[::-1].cumsum()[::-1]
    tiny = 1e-7
    rows = np.stack(
        [
            hits,
            misses,
            misses[0] - misses,
            hits[0] - hits,
            hits / np.maximum(tiny, hits + misses),
            hits / np.maximum(tiny, hits[0]),
        ]
    )
    shape = TensorShapeProto(
        dim=[TensorShapeProto.Dim(size=rows.shape[0]), TensorShapeProto.Dim(size=rows.shape[1])]
    )
    tensor = TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=shape)
    content = PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    return _tensor_summary(tag, "pr_curves", content, tensor)


def hparams(hparam_dict: Any, metric_dict: Any, hparam_domain_discrete: Any = None) -> Any:
    """The three messages of the hparams page: the experiment, the start of a session and its end."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    infos = []
    start = plugin_data_pb2.SessionStartInfo()
    for name, value in (hparam_dict or {}).items():
        if value is None:
            continue
        value = value.item() if isinstance(value, rl.Tensor) else value
        if isinstance(value, bool):
            start.hparams[name].bool_value, kind = value, "DATA_TYPE_BOOL"
        elif isinstance(value, (int, float)):
            start.hparams[name].number_value, kind = value, "DATA_TYPE_FLOAT64"
        elif isinstance(value, str):
            start.hparams[name].string_value, kind = value, "DATA_TYPE_STRING"
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        info = {"name": name, "type": api_pb2.DataType.Value(kind)}
        if hparam_domain_discrete and name in hparam_domain_discrete:
            info["domain_discrete"] = struct_pb2.ListValue(
                values=[struct_pb2.Value(string_value=v) if isinstance(v, str) else struct_pb2.Value(number_value=v)
                        for v in hparam_domain_discrete[name]]
            )  # fmt: skip
        infos.append(api_pb2.HParamInfo(**info))
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=k)) for k in metric_dict]
    contents = (
        (metadata.EXPERIMENT_TAG, plugin_data_pb2.HParamsPluginData(experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics))),
        (metadata.SESSION_START_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_start_info=start)),
        (metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(
            session_end_info=plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS")))),
    )  # fmt: skip
    result = []
    for tag, content in contents:
        content.version = metadata.PLUGIN_DATA_VERSION
        plugin = SummaryMetadata.PluginData(
            plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString()
        )
        result.append(Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))]))
    return tuple(result)


def custom_scalars(layout: Any) -> Any:
    """The message that arranges scalars into charts: {category: {chart: ["Multiline" or "Margin", tags]}}."""
    from tensorboard.plugins.custom_scalar import layout_pb2

    categories = []
    for title, charts in layout.items():
        made = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(
                    layout_pb2.Chart(title=name, margin=layout_pb2.MarginChartContent(series=[series]))
                )
            else:
                made.append(
                    layout_pb2.Chart(title=name, multiline=layout_pb2.MultilineChartContent(tag=tags))
                )
        categories.append(layout_pb2.Category(title=title, chart=made))
    packed = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[packed], tensor_shape=TensorShapeProto())
    return _tensor_summary("custom_scalars__config__", "custom_scalars", b"", tensor)
