"""SummaryWriter: what a training run reports, in event files."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any, Self

from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary


class FileWriter:
    """Events into the files of one folder."""

    def __init__(
        self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        result: str = self.event_writer.get_logdir()
        return result

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        if step is not None:
            event.step = int(step)
        event.wall_time = walltime if walltime is not None else time.time()
        self.event_writer.add_event(event)

    def add_summary(
        self, message: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        self.add_event(event_pb2.Event(summary=message), global_step, walltime)

    def flush(self) -> None:
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()

    def reopen(self) -> None:
        self.event_writer.reopen()


class SummaryWriter:
    """Writes scalars, histograms, images, texts and more for TensorBoard: `tensorboard --logdir runs`."""

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = str(log_dir), purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: Any = None
        self.all_writers: Any = None
        self._get_file_writer()
        self.default_bins = summary.default_bins().tolist()

    def _get_file_writer(self) -> Any:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                self.file_writer.add_event(
                    event_pb2.Event(step=self.purge_step, session_log=start), self.purge_step
                )
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def _add(self, message: Any, global_step: Any, walltime: Any) -> None:
        self._get_file_writer().add_summary(message, global_step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several scalars in one chart; each gets a folder of its own below the run's."""
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = self._open(folder)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """The distribution of some values."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        message = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(message, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: floats of 0..1 or bytes."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Images side by side."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of Matplotlib, or a list of them."""
        import numpy as np
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures = figure if isinstance(figure, list) else [figure]
        images = []
        for f in figures:
            canvas = FigureCanvasAgg(f)
            canvas.draw()
            images.append(np.asarray(canvas.buffer_rgba())[:, :, :3])
            if close:
                import matplotlib.pyplot

                matplotlib.pyplot.close(f)
        if isinstance(figure, list):
            self.add_image(tag, np.stack(images), global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, images[0], global_step, walltime, dataformats="HWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound: one row of -1..1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision over recall of a binary classifier."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_custom_scalars(self, layout: Any) -> None:
        """Arranges scalars into charts."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The settings of a run and what they led to."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer.file_writer.add_summary(message)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """The ops of model(*input_to_model), in boxes that open module by module; one call is run for it."""
        from .graph import model_graph

        graph = model_graph(model, input_to_model, verbose)
        self._get_file_writer().add_event(event_pb2.Event(graph_def=graph.SerializeToString()))

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Points for the projector, as the tables that it reads."""
        matrix = summary.to_numpy(mat)
        if matrix.ndim != 2:
            raise ValueError("mat should be 2D, where mat.size(0) is the number of data points")
        name = os.path.join(f"{0 if global_step is None else global_step:05d}", str(tag))
        folder = os.path.join(self.log_dir, name)
        os.makedirs(folder, exist_ok=True)
        lines = [
            "embeddings {",
            f'tensor_name: "{tag}:{global_step or 0:05d}"',
            f'tensor_path: "{os.path.join(name, "tensors.tsv")}"',
        ]
        with open(os.path.join(folder, "tensors.tsv"), "w") as f:
            f.writelines("\t".join(map(str, row)) + "\n" for row in matrix.tolist())
        if metadata is not None:
            if len(metadata) != matrix.shape[0]:
                raise ValueError("#labels should equal with #data points")
            with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as f:
                if metadata_header:
                    f.write("\t".join(metadata_header) + "\n")
                f.writelines(
                    ("\t".join(map(str, row)) if metadata_header else str(row)) + "\n" for row in metadata
                )
            lines.append(f'metadata_path: "{os.path.join(name, "metadata.tsv")}"')
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a") as f:
            f.write("\n".join([*lines, "}"]) + "\n")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: int = 4,
        walltime: float | None = None,
    ) -> None:
        """Videos (N, T, C, H, W), bytes or floats in 0..1, side by side as one video."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points (N, points, 3) with their colours (N, points, 3), and triangles (N, triangles, 3) of their indices."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Writes what is waiting."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what is waiting and closes the files; the next value opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
