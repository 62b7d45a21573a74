"""The modules torch.xpu, torch.mps and torch.mtia: devices that are not here. Questions are answered, what needs one says so."""

_ZERO = ("device_count", "memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved",
         "current_allocated_memory", "driver_allocated_memory", "recommended_max_memory")  # fmt: skip
_NOTHING = ("empty_cache", "synchronize", "manual_seed", "manual_seed_all", "seed", "seed_all",
            "reset_peak_memory_stats", "reset_accumulated_memory_stats", "set_per_process_memory_fraction")  # fmt: skip
_NEEDS = ("init", "current_device", "set_device", "get_device_name", "get_device_capability", "get_device_properties",
          "get_rng_state", "set_rng_state", "current_stream", "stream", "Stream", "Event", "mem_get_info",
          "get_stream_from_external", "set_stream", "device", "device_of")  # fmt: skip


def fill(module, title):
    """Puts the functions of a missing device into a module's namespace."""
    name = module["__name__"].rpartition(".")[2]

    def needs(function):
        def needs_a_device(*args, **kwargs):
            raise RuntimeError(
                f"torch.{name}.{function}: rushlight has no {title}; check torch.{name}.is_available() first"
            )

        needs_a_device.__name__ = needs_a_device.__qualname__ = function
        return needs_a_device

    def no(*args, **kwargs):
        return False

    module.update({n: lambda *a, **k: 0 for n in _ZERO})
    module.update({n: lambda *a, **k: None for n in _NOTHING})
    module.update({n: needs(n) for n in _NEEDS})
    module.update(is_available=no, is_initialized=no, is_bf16_supported=no, _is_in_bad_fork=no)
    module.update(
        get_rng_state_all=lambda: [], set_rng_state_all=lambda states: None, memory_stats=lambda d=None: {}
    )
