"""Modules of PyTorch that rushlight has in name only: programs import them and may never use them.

Each line: a module, and its names. `Name(A B)` is an enumeration with those members, `name=` a function or class found
elsewhere, `Name!` an exception that nothing raises and programs catch, anything else a class whose use raises NotImplementedError with an explanation (see unsupported.placeholder).
"""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import re
import sys
from typing import Any

from rushlight._core.unsupported import placeholder, unsupported_attribute

_TABLE = """
_C._distributed_c10d: Reducer Logger ProcessGroup=distributed.ProcessGroup Store=distributed.Store Work=distributed.Work ReduceOp=distributed.ReduceOp
_C._distributed_rpc: _is_current_rpc_agent_set=_core.unsupported.never
_C._functorch: _add_batch_dim=_functorch._c._add_batch_dim _remove_batch_dim=_functorch._c._remove_batch_dim _unwrap_batched=_functorch._c._unwrap_batched _vmap_increment_nesting=_functorch._c._vmap_increment_nesting _vmap_decrement_nesting=_functorch._c._vmap_decrement_nesting _is_vmap_fallback_enabled=_functorch._c._is_vmap_fallback_enabled _set_vmap_fallback_enabled=_functorch._c._set_vmap_fallback_enabled current_level=_functorch._c.current_level get_unwrapped=_functorch._c.get_unwrapped is_batchedtensor=_functorch._c.is_batchedtensor is_functionaltensor=_functorch._c.is_functionaltensor is_functorch_wrapped_tensor=_functorch._c.is_functorch_wrapped_tensor is_gradtrackingtensor=_functorch._c.is_gradtrackingtensor is_legacy_batchedtensor=_functorch._c.is_legacy_batchedtensor maybe_current_level=_functorch._c.maybe_current_level maybe_get_bdim=_functorch._c.maybe_get_bdim maybe_get_level=_functorch._c.maybe_get_level peek_interpreter_stack=_functorch._c.peek_interpreter_stack reshape_dim_into=_functorch._c.reshape_dim_into reshape_dim_outof=_functorch._c.reshape_dim_outof TransformType=_functorch._c.TransformType
_dynamo._trace_wrapped_higher_order_op: TransformGetItemToIndex
_dynamo.exc: TorchDynamoException! BackendCompilerFailed! FailOnRecompileLimitHit! InternalTorchDynamoError! InvalidBackend! RecompileError! ResetRequired! TorchRuntimeError! UncapturedHigherOrderOpError! Unsupported! UserError! TensorifyScalarRestartAnalysis!
_dynamo.variables:
_dynamo.variables.builder: wrap_fx_proxy
_dynamo.variables.constant: ConstantVariable
_dynamo.variables.functions: NestedUserFunctionVariable UserFunctionVariable
_dynamo.variables.higher_order_ops: TorchHigherOrderOperatorVariable make_attr speculate_subgraph unimplemented
_dynamo.variables.tensor: TensorVariable
_export: capture_pre_autograd_graph
_functorch.aot_autograd: aot_function aot_module aot_module_simplified make_boxed_func
_guards: TracingContext active_fake_mode=_core.unsupported.nothing detect_fake_mode=_core.unsupported.nothing
_higher_order_ops:
_higher_order_ops.cond: cond=_compat.control_flow.cond cond_op=_compat.control_flow.cond
_inductor.codecache: FxGraphCache PyCodeCache extract_tensor_metadata_for_cache_key
_inductor.cpu_vec_isa: pick_vec_isa
_inductor.exc: InductorError!
_inductor.inductor_prims:
_inductor.runtime:
_inductor.runtime.cache_dir_utils: cache_dir
_inductor.utils: fresh_inductor_cache
_logging: set_logs=_core.unsupported.nothing
_prims_common: corresponding_complex_dtype=_compat.tensor_queries.corresponding_complex_dtype corresponding_real_dtype=_compat.tensor_queries.corresponding_real_dtype
_subclasses.functional_tensor: FunctionalTensor=_transforms.functionalization.FunctionalTensor FunctionalTensorMode=_transforms.functionalization.FunctionalMode dispatch_functionalize=_transforms.functionalization.dispatch_functionalize mb_unwrap_functional_tensor=_transforms.functionalization.unwrapped
_vmap_internals: vmap=_transforms.vmap.call.vmap _vmap=_transforms.vmap.call.vmap
_weights_only_unpickler:
ao.quantization.fake_quantize: FakeQuantize=ao.quantization.FakeQuantize FakeQuantizeBase=ao.quantization.FakeQuantizeBase default_fake_quant=ao.quantization.default_fake_quant disable_fake_quant=ao.quantization.disable_fake_quant disable_observer=ao.quantization.disable_observer enable_fake_quant=ao.quantization.enable_fake_quant enable_observer=ao.quantization.enable_observer
ao.quantization.fx:
ao.quantization.fx._decomposed:
ao.quantization.observer: HistogramObserver=ao.quantization.HistogramObserver MinMaxObserver=ao.quantization.MinMaxObserver MovingAverageMinMaxObserver=ao.quantization.MovingAverageMinMaxObserver ObserverBase=ao.quantization.ObserverBase PerChannelMinMaxObserver=ao.quantization.PerChannelMinMaxObserver PlaceholderObserver=ao.quantization.PlaceholderObserver default_observer=ao.quantization.default_observer default_weight_observer=ao.quantization.default_weight_observer
ao.quantization.qconfig: QConfig=ao.quantization.QConfig default_qconfig=ao.quantization.default_qconfig default_dynamic_qconfig=ao.quantization.default_dynamic_qconfig get_default_qconfig=ao.quantization.get_default_qconfig get_default_qat_qconfig=ao.quantization.get_default_qat_qconfig
autograd.profiler_legacy: profile
classes: load_library
compiler.config:
cuda.graphs: CUDAGraph graph graph_pool_handle make_graphed_callables
cuda.nccl: version
cuda.profiler: profile start stop
cuda.sparse:
cuda.streams: Stream=cuda.Stream Event=cuda.Event ExternalStream
distributed._composable: fully_shard replicate checkpoint
distributed._composable.fsdp: FSDPModule MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy fully_shard register_fsdp_forward_method
distributed._composable.fsdp.fully_shard: FSDPModule fully_shard
distributed._composable.replicate: replicate DDP
distributed._functional_collectives: AsyncCollectiveTensor all_gather_tensor all_reduce reduce_scatter_tensor all_to_all_single all_gather_tensor_autograd all_to_all_single_autograd wait_tensor permute_tensor
distributed._shard:
distributed._shard.sharded_tensor: ShardedTensor empty
distributed._sharding_spec: ChunkShardingSpec
distributed._tensor: DTensor DeviceMesh Shard=distributed._placements.Shard Replicate=distributed._placements.Replicate Partial=distributed._placements.Partial Placement=distributed._placements.Placement distribute_tensor distribute_module
distributed._tensor.api: DTensor
distributed._tensor.experimental: implicit_replication
distributed.algorithms:
distributed.algorithms._checkpoint:
distributed.algorithms._checkpoint.checkpoint_wrapper: CheckpointImpl(REENTRANT NO_REENTRANT) CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper
distributed.algorithms.ddp_comm_hooks: DDPCommHookType register_ddp_comm_hook
distributed.algorithms.ddp_comm_hooks.debugging_hooks: noop_hook
distributed.algorithms.ddp_comm_hooks.default_hooks: allreduce_hook fp16_compress_hook fp16_compress_wrapper bf16_compress_hook bf16_compress_wrapper
distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks:
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: PostLocalSGDState post_localSGD_hook
distributed.algorithms.ddp_comm_hooks.powerSGD_hook: PowerSGDState batched_powerSGD_hook powerSGD_hook
distributed.algorithms.join: Join Joinable JoinHook
distributed.algorithms.model_averaging:
distributed.algorithms.model_averaging.averagers: ModelAverager PeriodicModelAverager
distributed.autograd: is_available=_core.unsupported.never context backward get_gradients DistAutogradContext
distributed.checkpoint: FileSystemReader FileSystemWriter DefaultLoadPlanner DefaultSavePlanner LoadPlan LoadPlanner SavePlan SavePlanner Metadata StorageReader StorageWriter load load_state_dict save save_state_dict async_save
distributed.checkpoint._consolidate_hf_safetensors: consolidate_safetensors_files
distributed.checkpoint.default_planner: DefaultLoadPlanner DefaultSavePlanner create_default_local_save_plan create_default_global_save_plan
distributed.checkpoint.filesystem: FileSystemReader FileSystemWriter
distributed.checkpoint.format_utils: dcp_to_torch_save torch_save_to_dcp _EmptyStateDictLoadPlanner _load_state_dict
distributed.checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint.metadata: Metadata BytesStorageMetadata TensorStorageMetadata STATE_DICT_TYPE
distributed.checkpoint.optimizer: load_sharded_optimizer_state_dict
distributed.checkpoint.planner: LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem
distributed.checkpoint.state_dict: StateDictOptions=distributed._state_dict.StateDictOptions get_model_state_dict=distributed._state_dict.get_model_state_dict get_optimizer_state_dict=distributed._state_dict.get_optimizer_state_dict get_state_dict=distributed._state_dict.get_state_dict set_model_state_dict=distributed._state_dict.set_model_state_dict set_optimizer_state_dict=distributed._state_dict.set_optimizer_state_dict set_state_dict=distributed._state_dict.set_state_dict
distributed.checkpoint.state_dict_loader: _load_state_dict
distributed.checkpoint.stateful: Stateful
distributed.constants: default_pg_timeout=distributed.default_pg_timeout
distributed.device_mesh: DeviceMesh init_device_mesh
distributed.elastic:
distributed.elastic.agent:
distributed.elastic.multiprocessing: Std DefaultLogsSpecs
distributed.elastic.multiprocessing.errors: ChildFailedError! ErrorHandler ProcessFailure record=_core.unsupported.unchanged
distributed.elastic.utils:
distributed.elastic.utils.distributed: get_free_port get_socket_with_port create_c10d_store
distributed.fsdp: BackwardPrefetch(BACKWARD_PRE BACKWARD_POST) CPUOffload CPUOffloadPolicy FSDPModule FlatParameter FullOptimStateDictConfig=distributed._fsdp.FullOptimStateDictConfig FullStateDictConfig=distributed._fsdp.FullStateDictConfig FullyShardedDataParallel=distributed._fsdp.FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig=distributed._fsdp.OptimStateDictConfig OptimStateKeyType(PARAM_NAME PARAM_ID) ShardedOptimStateDictConfig ShardedStateDictConfig=distributed._fsdp.ShardedStateDictConfig ShardingStrategy=distributed._fsdp.ShardingStrategy StateDictConfig=distributed._fsdp.StateDictConfig StateDictSettings=distributed._fsdp.StateDictSettings StateDictType=distributed._fsdp.StateDictType fully_shard register_fsdp_forward_method
distributed.fsdp._fully_shard: FSDPModule fully_shard
distributed.fsdp._fully_shard._fsdp_param_group: FSDPParamGroup
distributed.fsdp.api: =distributed.fsdp
distributed.fsdp.fully_sharded_data_parallel: =distributed.fsdp
distributed.fsdp.sharded_grad_scaler: ShardedGradScaler
distributed.fsdp.wrap: CustomPolicy=distributed._fsdp_wrap.CustomPolicy ModuleWrapPolicy=distributed._fsdp_wrap.ModuleWrapPolicy _FSDPPolicy _Policy=distributed._fsdp_wrap._Policy enable_wrap wrap always_wrap_policy=distributed._fsdp_wrap.always_wrap_policy lambda_auto_wrap_policy=distributed._fsdp_wrap.lambda_auto_wrap_policy size_based_auto_wrap_policy=distributed._fsdp_wrap.size_based_auto_wrap_policy transformer_auto_wrap_policy=distributed._fsdp_wrap.transformer_auto_wrap_policy _or_policy=distributed._fsdp_wrap._or_policy _recursive_wrap _module_wrap_policy=distributed._fsdp_wrap._module_wrap_policy
distributed.launcher: LaunchConfig elastic_launch
distributed.launcher.api: LaunchConfig elastic_launch
distributed.optim: DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
distributed.pipelining: Pipe PipelineStage Schedule1F1B ScheduleGPipe SplitPoint(BEGINNING END) build_stage pipe_split pipeline
distributed.pipelining.microbatch: TensorChunkSpec
distributed.rpc: is_available=_core.unsupported.never BackendType RRef TensorPipeRpcBackendOptions WorkerInfo get_worker_info init_rpc remote rpc_async rpc_sync shutdown RpcBackendOptions
distributed.rpc.api: _require_initialized=_core.unsupported.unchanged _all_gather _barrier _wait_all UNSET_RPC_TIMEOUT
distributed.run: main run get_args_parser config_from_args
distributed.tensor: DTensor DeviceMesh Partial=distributed._placements.Partial Placement=distributed._placements.Placement Replicate=distributed._placements.Replicate Shard=distributed._placements.Shard distribute_module distribute_tensor empty full init_device_mesh ones rand randn zeros
distributed.tensor._utils: compute_local_shape_and_global_offset
distributed.tensor.device_mesh: DeviceMesh init_device_mesh
distributed.tensor.experimental: context_parallel implicit_replication local_map
distributed.tensor.experimental._attention: context_parallel set_rotate_method _cp_options
distributed.tensor.parallel: ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel parallelize_module
distributed.tensor.parallel.fsdp:
distributed.tensor.placement_types: Partial=distributed._placements.Partial Placement=distributed._placements.Placement Replicate=distributed._placements.Replicate Shard=distributed._placements.Shard _StridedShard
distributed.utils: _sync_module_states
export: Dim=_compat.export_dims.Dim dims=_compat.export_dims.dims ExportedProgram ShapesCollection export load save register_dataclass unflatten
export._trace: _export
export.decomp_utils: CustomDecompTable
export.dynamic_shapes: Dim=_compat.export_dims.Dim dims=_compat.export_dims.dims _DimHint=_compat.export_dims._DimHint ShapesCollection
export.experimental:
export.graph_signature: InputKind(USER_INPUT PARAMETER BUFFER CONSTANT_TENSOR CUSTOM_OBJ TOKEN) OutputKind(USER_OUTPUT LOSS_OUTPUT BUFFER_MUTATION GRADIENT_TO_PARAMETER)
fx.experimental.optimization: fuse
fx.experimental.symbolic_shapes: ShapeEnv GuardOnDataDependentSymNode! free_symbols free_unbacked_symbols guard_or_false=_core.unsupported.truth guard_or_true=_core.unsupported.truth statically_known_true=_core.unsupported.truth guard_size_oblivious=_core.unsupported.truth is_concrete_int=_core.unsupported.always is_nested_int=nested._ragged_size.is_nested_int
fx.passes.infra:
fx.passes.infra.pass_base: PassBase PassResult
fx.passes.infra.pass_manager: PassManager
fx.passes.split_module: split_module
fx.passes.symbolic_shape_prop:
nested._internal.ops: extract_kwargs
nn.intrinsic: ConvBn1d ConvBn2d ConvBnReLU2d ConvReLU1d ConvReLU2d LinearReLU
nn.intrinsic.qat:
nn.qat: Conv2d Linear
nn.quantized.dynamic: Linear LSTM GRU
nn.quantized.modules:
nn.utils._per_sample_grad: call_for_per_sample_grads
numa:
numa.binding: AffinityMode(NODE SOCKET EXCLUSIVE CORE_COMPLEX) NumaOptions
onnx.symbolic_opset10:
onnx.symbolic_opset11: select squeeze unsqueeze
onnx.symbolic_opset12: dropout
onnx.symbolic_opset9: expand masked_fill softmax
onnx.utils:
package: EmptyMatchError! Directory Importer OrderedImporter PackageExporter PackageImporter PackagingError! sys_importer
quantization.fake_quantize: =ao.quantization.fake_quantize
quantization.observer: =ao.quantization.observer
quantization.qconfig: =ao.quantization.qconfig
testing._internal.distributed:
utils._debug_mode: DebugMode
utils._sympy:
utils._sympy.functions:
utils._sympy.numbers: int_oo IntInfinity
utils._sympy.value_ranges: ValueRanges
utils._triton: has_triton
utils.bottleneck:
utils.bundled_inputs:
utils.data.datapipes.iter.combinatorics: SamplerIterDataPipe=utils.data.datapipes.iter.Sampler ShufflerIterDataPipe=utils.data.datapipes.iter.Shuffler
utils.data.datapipes.iter.filelister: FileListerIterDataPipe=utils.data.datapipes.iter.FileLister
utils.data.datapipes.iter.fileopener: FileOpenerIterDataPipe=utils.data.datapipes.iter.FileOpener
utils.data.datapipes.iter.routeddecoder: RoutedDecoderIterDataPipe=utils.data.datapipes.iter.RoutedDecoder
utils.data.datapipes.iter.streamreader: StreamReaderIterDataPipe=utils.data.datapipes.iter.StreamReader
utils.file_baton: FileBaton
utils.hipify:
utils.hipify.hipify_python: hipify
utils.mobile_optimizer: optimize_for_mobile
utils.serialization:
utils.viz:
"""
MODULES = dict(line.split(":", 1) for line in _TABLE.strip().splitlines())


def _names(path):
    """{name: value} of a placeholder module."""
    space = {}
    for name, thrown, members, other in re.findall(r"(\w*)(!)?(?:\(([^)]*)\))?(?:=([\w.]+))?", MODULES[path]):
        if other and not name:
            space.update(_names(other))
        elif other:
            home, _, last = other.rpartition(".")
            space[name] = getattr(importlib.import_module("rushlight." + home if home else "rushlight"), last)
        elif members:
            space[name] = enum.Enum(name, members.split(), module="rushlight." + path)
        elif thrown:
            space[name] = type(name, (RuntimeError,), {"__module__": "rushlight." + path})
        elif name:
            space[name] = placeholder(f"{path}.{name}")
    return space


class _Loader:
    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        path = module.__name__.partition(".")[2]
        module.__dict__.update(_names(path))
        module.__getattr__ = unsupported_attribute(module.__name__)
        module.__doc__ = f"torch.{path}: its names, not its functions."


def spec(name):
    """The spec of a placeholder module of rushlight, or None."""
    if name.partition(".")[2] not in MODULES:
        return None
    loader: Any = _Loader  # the class itself: its methods are static
    return importlib.machinery.ModuleSpec(name, loader, is_package=True)


def is_placeholder(name):
    return getattr(sys.modules.get(name), "__loader__", None) is _Loader
