// A barrier for all work-items of a cooperative launch. The driver keeps some memory for each such launch,
// so that several may run at once; its address is in two registers of the launch, the higher half first.
// The second word there counts blocks in the way of CUDA's own barrier of a grid: every block adds one, and
// the first block what is missing to 2^31, so that the highest bit changes when all have come, each time.
// kernels/ptx leaves lines with weir_grid_ as they are.
//
// This is also put before source that the driver's compiler compiles, which has no __nvvm functions.
static ulong weir_grid_counter(void)
{
    ulong memory;
    __asm__ volatile("{\n\t"
                     ".reg .b32 weir_grid_low, weir_grid_high;\n\t"
                     "mov.u32 weir_grid_high, %%envreg1;\n\t"
                     "mov.u32 weir_grid_low, %%envreg2;\n\t"
                     "mov.b64 %0, {weir_grid_low, weir_grid_high};\n\t"
                     "}"
                     : "=l"(memory));
    if (memory == 0) // no cooperative launch: nothing else would end it
        __asm__ volatile("trap;");
    return memory + sizeof(uint);
}

// Everything that the block has written before it came is there for every block that has left: bar.sync
// orders it before the release of the block's first work-item, and what follows after its acquire.
static uint weir_grid_arrive(ulong counter, uint blocks)
{
    const int first = get_group_id(0) + get_group_id(1) + get_group_id(2) == 0;
    const uint addend = first ? 0x80000000u - (blocks - 1) : 1;
    uint before;
    __asm__ volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(counter), "r"(addend)
                     : "memory");
    return before;
}

static void weir_grid_leave(ulong counter, uint before)
{
    uint now;
    do {
        __asm__ volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
}

void weir_grid_barrier(void)
{
    const uint blocks = (uint)(get_num_groups(0) * get_num_groups(1) * get_num_groups(2));
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (blocks > 1 && get_local_id(0) + get_local_id(1) + get_local_id(2) == 0) {
        const ulong counter = weir_grid_counter();
        weir_grid_leave(counter, weir_grid_arrive(counter, blocks));
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
