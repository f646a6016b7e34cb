"""Programs that hosts make: fifteen repositories, each with the options that its host passes, or the text that it
puts together. `programs` lists them as files.File; REPOSITORIES has their commits."""
import glob
import os
import re
import shlex

import files

REPOSITORIES = {
    "hashcat/hashcat": "d3983edaf22f5370d1bb136c930460bcad2d9f6e",
    "krrishnarraj/clpeak": "a68fbf0514f0ada6a88823dba7cb7067569dbbf1",
    "XiaoMi/mace": "0fc55a548ef41b37fd15fd8944de5155eb09b3c1",
    "PaddlePaddle/Paddle-Lite": "3d329c954c82d3e189e2d3ab35a5558d35e7202a",
    "sgminer-dev/sgminer": "8bf1c1807cca1ca0ec0f87b452e3d1cb395f0b1b",
    "e-ago/bitcracker": "4257899212421bbdf4899f8c1b154edebde872f8",
    "clMathLibraries/clSPARSE": "62c93e6f0e05b84caefb1709c6118e0879b9f083",
    "silx-kit/silx": "99b993be0a9d846d3a30b7eb2e9569237319e98f",
    "ufo-kit/ufo-filters": "969ef1bff9ae9b9b62f32ac9126c33d4324d8e73",
    "gromacs/gromacs": "b1a82ec1956eb9658d33f3ec6f3adfdbb6b53a7b",
    "lightvector/KataGo": "6a1fc5de9fc253723ac475a0683bf0b9d9b7bd19",
    "CNugteren/CLBlast": "eeff251463434753470bccc16f2879437c220808",
    "xmrig/xmrig": "b2ca72480c58d197e18c885d9fc1a0c8d517e60a",
    "preda/gpuowl": "6c16f7ee0cdcdbd9f9539e225269fbf9f1a86fe0",
    "inducer/pyopencl": "26c8ab983d31ec53f22ca7812194bf35d984cd78",
}

HASHCAT = """-I . -w -D KERNEL_STATIC -D INCLUDE_PATH=OpenCL -D 'XM2S(x)=#x' -D 'M2S(x)=XM2S(x)'
    -D MAX_THREADS_PER_BLOCK=64 -D LOCAL_MEM_TYPE=1 -D VENDOR_ID=32 -D CUDA_ARCH=900 -D HAS_ADD=0 -D HAS_ADDC=0
    -D HAS_SUB=0 -D HAS_SUBC=0 -D HAS_VADD=0 -D HAS_VADDC=0 -D HAS_VADD_CO=0 -D HAS_VADDC_CO=0 -D HAS_VSUB=0
    -D HAS_VSUBB=0 -D HAS_VSUB_CO=0 -D HAS_VSUBB_CO=0 -D HAS_VPERM=0 -D HAS_VADD3=0 -D HAS_VBFE=0 -D HAS_BFE=0
    -D HAS_LOP3=0 -D HAS_MOV64=0 -D HAS_PRMT=0 -D HAS_SHFW=0 -D VECT_SIZE=1 -D DEVICE_TYPE=4 -D DGST_R0=0
    -D DGST_R1=1 -D DGST_R2=2 -D DGST_R3=3 -D DGST_ELEM=4 -D KERN_TYPE=0 -D ATTACK_EXEC=11 -D ATTACK_KERN=0
    -D ATTACK_MODE=0 -D FIXED_LOCAL_SIZE=1024 -D FIXED_LOCAL_SIZE_COMP=1024 -D SCRYPT_N=1024 -D SCRYPT_R=1
    -D SCRYPT_P=1 -D SCRYPT_TMTO=0 -D SCRYPT_TMP_ELEM=1024"""
PADDLE = """-I lite/backends/opencl/cl_kernel -DCL_DTYPE_float -DCL_DTYPE_FLOAT_FORCE -DMUTABLE_TYPE=float -DDTYPE=float
    -DFUSE_SCALE -DSCALE_SLOPE=1.0f -DSCALE_BIAS=0.0f -DSCALE_ALPHA=1.0f"""
PADDLE_OPERATOR = """'-DOPERATOR(in,bias)=(in+bias)' '-DPOSTOPERATOR(r)=(r)' -DDATAINIT=0 '-DINNEROPERATOR(r)=r'
    -DTYPEINIT=float4 -DFLAG_TYPE4=int4"""
PADDLE_OWN = {
    "trigonometric_kernel.cl": "'-DOPERATOR(in)=sin(in)'",
    "reduce_kernel.cl": """'-DOPERATOR(r,t)=r=(r+t);' '-DPOSTOPERATOR(r)=(r/axis_n)' -DDATAINIT=0.0f
        '-DINNEROPERATOR(r)=r.x+r.y+r.z+r.w'""",
}
SGMINER = """-I kernel -I . -DWORKSIZE=64 -DLOOKUP_GAP=2 -DCONCURRENT_THREADS=8192 -DNFACTOR=10 -DMAX_GLOBAL_THREADS=8192
    -DSPH_COMPACT_BLAKE_64=0 -DSPH_LUFFA_PARALLEL=0 -DSPH_KECCAK_UNROLL=0 -DSPH_HAMSI_EXPAND_BIG=1
    -DSPH_HAMSI_SHORT=1"""
BITCRACKER = "-I src_OpenCL -DDEV_NVIDIA_SM50=0 -DSTRICT_CHECK=0 -DATTACK_MODE=0"
GMX = "-D_NVIDIA_SOURCE_ -I src/gromacs/gpu_utils -I src/gromacs/pbcutil -I src -cl-fast-relaxed-math"
# Repository, pattern, options, standard, and of how many files each is taken.
PLAIN = [
    ("hashcat/hashcat", "OpenCL/m*.cl", HASHCAT, "CL1.2", 24),
    ("XiaoMi/mace", "mace/ops/opencl/cl/*.cl", """-I mace/ops/opencl/cl -I . -DDATA_TYPE=float -DCMD_DATA_TYPE=f
        -DIN_DATA_TYPE=float -DOUT_DATA_TYPE=float -DIN_CMD_DATA_TYPE=f -DOUT_CMD_DATA_TYPE=f -DELTWISE_TYPE=0
        -DREDUCE_TYPE=0 -DCL_CHANNEL_DIV=4 -DINPUT_NUM=2 -DWINO_BLK_SIZE=2 -DSTRIDE=1 -DTABLE_SIZE=1024
        -DACROSS_CHANNELS""",
     "CL1.2", 1),
    ("PaddlePaddle/Paddle-Lite", "lite/backends/opencl/cl_kernel/*/*.cl", PADDLE, "CL1.2", 1),
    ("sgminer-dev/sgminer", "kernel/*.cl", SGMINER, "CL1.2", 1),
    ("e-ago/bitcracker", "src_OpenCL/**/*.cl", BITCRACKER, "CL1.2", 1),
    ("clMathLibraries/clSPARSE", "src/library/kernels/*.cl", """-DINDEX_TYPE=uint -DVALUE_TYPE=float -DSIZE_TYPE=ulong
        -DWG_SIZE=256 -DWAVE_SIZE=32 -DSUBWAVE_SIZE=16 -DKEY_TYPE=int -DKERNEL2WORKGROUPSIZE=256
        -DKERNEL0WORKGROUPSIZE=256 -DKERNEL1WORKGROUPSIZE=256 -DWGSIZE=256 -DN_BLOCKS=8 -DN_THREADS=256
        -DBLOCKSIZE=1024 -DBLOCK_MULTIPLIER=3 -DROWS_FOR_VECTOR=1 -DOP_RI_PLUS -DOP_EW_PLUS -DOP_RO_DUMMY
        -DATOMIC_FLOAT -DWG_BITS=24 -DROW_BITS=32 -DLONG=0 -DBLOCKSIZE2=256 -DROWBITS=32 -DWGBITS=24
        -DREDUCE_BLOCK_SIZE=256 -Dscan_exclusive -DOP_RI_F_MULTIPLY""",
     "CL1.2", 1),
    ("ufo-kit/ufo-filters", "src/kernels/*.cl", "-DMEDIAN_BOX_SIZE=3", "CL1.2", 1),
    ("ufo-kit/ufo-filters", "contrib/kernels/*.cl", "-DBOXSIZE=3", "CL1.2", 1),
    ("gromacs/gromacs", "src/gromacs/nbnxm/opencl/nbnxm_ocl_kernels.cl", GMX + """ -I src/gromacs/nbnxm/opencl
        -I src/gromacs/ewald -I src/include -I api/legacy/include -Dwarp_size_test=32 -DGMX_OCL_FASTGEN -DEL_CUTOFF
        -DEELNAME=_ElecCut -DVDWNAME=_VdwLJ -DIATYPE_SHMEM -Dc_nbnxmGpuClusterSize=8
        -DNBNXM_MIN_DISTANCE_SQUARED_VALUE_FLOAT=3.82e-7f -Dc_centralShiftIndex=22 -Dc_nbnxmGpuNumClusterPerSupercluster=8 -Dc_nbnxmGpuJgroupSize=4
        -DNBNXM_MIN_DISTANCE_SQUARED_VALUE=3.82e-7f -DNB_EL_CUTOFF""", "CL1.2", 1),
    ("gromacs/gromacs", "src/gromacs/ewald/pme_program.cl", GMX + """ -I src/gromacs/ewald -Dwarp_size=32 -Dorder=4
        -DthreadsPerAtom=16 -Dc_virialAndEnergyCount=7 -Dc_spreadWorkGroupSize=128 -Dc_solveMaxWorkGroupSize=256
        -Dc_gatherWorkGroupSize=128 -DDIM=3 -DXX=0 -DYY=1 -DZZ=2 -Dc_usePadding=1 -Dc_skipNeutralAtoms=0
        -DwrapX=true -DwrapY=true -DsolveMaxWorkGroupSize=256 -Dc_pmeNeighborUnitcellCount=5 -Dc_pmeMaxUnitcellShift=2
        -DparallelExecutionWidth=32 -DatomsPerWarp=2""", "CL1.2", 1),
    ("preda/gpuowl", "src/cl/*.cl", """-I src/cl -DEXP=77936867 -DWIDTH=512 -DSMALL_HEIGHT=512 -DMIDDLE=8
        -DCARRY_LEN=8 -DNW=8 -DNH=8 -DWEIGHT_STEP=0.5 -DIWEIGHT_STEP=-0.3 -DFFT_VARIANT=202 '-DTAILT=U2(0.5,0.5)'
        -DTRIG_SCALE=1 '-DTRIG_SIN={1,2,3,4,5,6,7}' '-DTRIG_COS={1,2,3,4,5,6,7}' -DFRAC_BPW_HI=1 -DFRAC_BPW_LO=2
        -DFRAC_BITS_BIGSTEP=3""", "CL2.0", 1),
]
SILX = """-DX87_VOLATILE= -DNIMAGE=1024 -DNB_COLOR=1 -DWORKGROUP_SIZE=64 -DIMAGE_WIDTH=64 -DDTYPE=float -DIDX_DTYPE=int
    -DUSED_CONV_MODE=0 -DIMAGE_DIMS=2 -DFILTER_DIMS=1 -DDONT_USE_TEXTURES"""
KATAGO = """-DPRECISION=32 -DPRECISION_STORAGE=32 -DINTILE_XSIZE=4 -DINTILE_YSIZE=4 -DOUTTILE_XSIZE=2 -DOUTTILE_YSIZE=2
    -DCONV_XSIZE=3 -DCONV_YSIZE=3 -DINTILE_XOFFSET=-1 -DINTILE_YOFFSET=-1 -DXYSTRIDE=64 -DCHANNELSTRIDE=32
    -DBATCHSTRIDE=1 -DTILE_CHANNELS=4 -DTILE_XSIZE=8 -DTILE_YSIZE=8 -DLOCALSIZE_TOTAL=64 -DACTIVATION=1 -DTHREADS=64
    -DWG_XY_SIZE=64 -DWG_C_SIZE=1 -DC_PER_THREAD=4 -DTILE_SIZE=64 -DAPPLY_ELTS_PER_THREAD=4 -DELTS_PER_THREAD=4 -DATTN_BLOCK_Q=16 -DATTN_BLOCK_KV=16
    -DATTN_HEAD_DIM=32 -DATTN_V_HEAD_DIM=32"""
XMRIG = """-DSTRIDED_INDEX=2U -DMEM_CHUNK_EXPONENT=2U -DITERATIONS=0x80000U -DMASK=2097136U -DWORKSIZE=8U
    -DMEMORY=2097152LU -DCN_UNROLL=2 -DWORKERS_PER_HASH=8 -DGCN_VERSION=0 -DPLATFORM=2 -DGROUP_SIZE=256 -DPROGRAM=0
    -DXMRIG_INCLUDE_RANDOM_MATH -DKECCAK_PASSES=24 -I."""
XMRIG_FILES = {"cn/cryptonight.cl": "-DALGO_FAMILY=0x63000000 -DALGO_BASE=0x63150200 -DALGO=0x63150200",
               "rx/randomx.cl": "-DALGO=0x72151200", "kawpow/kawpow_dag.cl": "-DALGO=0x63150200"}
GEMM = ["xgemm_part1", "xgemm_part2", "xgemm_part3", "xgemm_part4"]
COPIES = ["copy_fast", "copy_pad", "transpose_fast", "transpose_pad"]
# The parts of each program of CLBlast, after its common one.
CLBLAST = {"level1/" + n: ["level1", n] for n in ("xswap", "xscal", "xcopy", "xaxpy", "xdot", "xnrm2", "xasum", "xamax",
                                                  "xhad")}
CLBLAST.update({"level2/xgemv": ["xgemv", "xgemv_fast"], "level2/xtrsv": ["xgemv", "xtrsv"]})
CLBLAST.update({"level2/" + n: ["level2", n] for n in ("xger", "xher", "xher2")})
CLBLAST.update({"level3/" + n: ["level3", n] for n in COPIES + ["convert_symmetric", "convert_triangular",
                                                               "convert_hermitian"]})
CLBLAST.update({"level3/xgemm": ["level3"] + COPIES + GEMM, "level3/xgemm_batched": ["level3"] + GEMM + ["xgemm_batched"],
                "level3/xgemm_direct": ["level3"] + ["xgemm_direct_part%d" % n for n in (1, 2, 3)],
                "level3/invert": ["level3"] + ["invert_diagonal_blocks_part%d" % n for n in (1, 2)]})
ROUTINES = {"convert_symmetric": "SYMM", "convert_triangular": "TRMM", "convert_hermitian": "HEMM", "invert": "INVERT"}
PYOPENCL = {"airy": "p[0] = 1", "bessel-j": "p[0] = bessel_jv(2, p[0])", "bessel-y": "p[0] = bessel_y0(p[0])",
            "eval-tbl": "p[0] = 1", "bessel-j-complex": "p[0] = 1", "hankel-complex": "p[0] = 1"}
RANDOM = {"philox": "philox4x32_ctr_t c = {{1,2,3,4}}; philox4x32_key_t k = {{1,2}}; p[0] = philox4x32(c, k).v[0]",
          "threefry": "threefry4x32_ctr_t c = {{1,2,3,4}}; p[0] = threefry4x32(c, c).v[0]"}


def words(text):
    """As in a shell, with "-D NAME" and "-I DIR" as one word each."""
    return shlex.split(re.sub(r"(-[DI])\s+", r"\1", text))


def text_of(*path):
    with open(os.path.join(*path), encoding="latin-1") as file:
        return file.read()


def plain(folder, repository, pattern, options, standard, step):
    root = os.path.join(folder, repository)
    for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True))[::step]:
        text, own = text_of(path), options
        if not re.search(r"\bkernel\b|__kernel|KERNEL_FQ|KERNEL\(|_kernels.clh", text):
            continue
        if repository.endswith("Paddle-Lite") and ("OPERATOR" in text or "DATAINIT" in text):
            own += " " + PADDLE_OWN.get(os.path.basename(path), PADDLE_OPERATOR)
        # clSPARSE's are strings of C++.
        made = re.sub(r'R"\(|\)"', "", text) if text.startswith('R"(') else None
        yield repository, os.path.relpath(path, root), made, words(own), standard


def silx(folder):
    root = os.path.join(folder, "silx-kit/silx/src/silx/resources/opencl")
    parts = "sift convolution preprocess algebra image gaussian reductions memset orientation_gpu descriptor_gpu1 matching_gpu"
    yield "sift.cl", "".join(text_of(root, "sift", n + ".cl") + "\n" for n in parts.split())
    for path in sorted(glob.glob(root + "/**/*.cl", recursive=True)):
        name, text = os.path.relpath(path, root), text_of(path)
        if "kernel" not in text or name == "sift/sift.cl":
            continue
        if name == "medfilt.cl":
            text = text_of(root, "bitonic.cl") + text
        if name == "statistics.cl":
            text = text_of(root, "doubleword.cl") + text_of(root, "kahan.cl") + text
        text = (text_of(root, "sift/sift.cl") if name.startswith("sift/") else "") + text
        yield name, re.sub(r"(?m)^#include .*", "", text)


def clpeak(folder):
    for path in sorted(glob.glob(os.path.join(folder, "krrishnarraj/clpeak/src/opencl/kernels/*.cl"))):
        text = text_of(path).replace("MSTRINGIFY(", "").replace("\\n", "\n")
        yield os.path.basename(path), re.sub(r"(?m)^\s*\)\s*$", "", text)


def katago(folder):
    found = re.findall(r'string OpenCLKernels::(\w+) = (OpenCLKernels::common \+ )?R"%%\((.*?)\)%%"',
                       text_of(folder, "lightvector/KataGo/cpp/neuralnet/openclkernels.cpp"), re.S)
    common = next(text for name, _, text in found if name == "common")
    for name, shared, text in found:
        if name != "common":
            yield name + ".cl", (common if shared else "") + text


def clblast(folder):
    root = os.path.join(folder, "CNugteren/CLBlast/src/kernels")

    def raw(name):
        return "".join(re.findall(r'R"\((.*?)\)"', text_of(root, name + ".opencl"), re.S)) + "\n"
    for precision in (32, 64, 3232):
        for name, parts in CLBLAST.items():
            level, routine = name.split("/")
            start = "#define PRECISION %d\n#define ROUTINE_%s\n" % (precision, ROUTINES.get(routine, "X"))
            yield "%s_%d.cl" % (name, precision), start + raw("common") + "".join(
                raw(level + "/" + part) for part in parts)


def pyopencl(folder):
    kernel = "__kernel void k(__global %s *p) { %s; }\n"
    for name, line in PYOPENCL.items():
        start = "#define PYOPENCL_DEFINE_CDOUBLE\n#include <pyopencl-complex.h>\n" if "complex" in name else ""
        yield name + ".cl", start + "#include <pyopencl-%s.cl>\n" % name + kernel % ("double", line)
    for name, line in RANDOM.items():
        yield name + ".cl", "#include <pyopencl-random123/%s.cl>\n" % name + kernel % ("uint", line)


MADE = [("silx-kit/silx", silx, SILX), ("krrishnarraj/clpeak", clpeak, ""), ("lightvector/KataGo", katago, KATAGO),
        ("CNugteren/CLBlast", clblast, ""), ("inducer/pyopencl", pyopencl, "-I pyopencl/cl")]


def found(folder):
    for row in PLAIN:
        yield from plain(folder, *row)
    for repository, function, options in MADE:
        for name, text in function(folder):
            yield repository, name, text, words(options), "CL1.2"
    for name, algorithm in XMRIG_FILES.items():
        root = "src/backend/opencl/cl/"
        yield ("xmrig/xmrig", root + name, None,
               words("-I%s -I%s %s %s" % (root + os.path.dirname(name), root, algorithm, XMRIG)), "CL1.2")


def programs(folder, made):
    """Files that are made of several go into the folder `made`."""
    for repository, name, text, options, standard in found(folder):
        file = files.File(repository, name, standard, options)
        if text is not None:
            path = os.path.join(made, repository, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="latin-1") as out:
                out.write(text)
            file.paths = [path]
        yield file
