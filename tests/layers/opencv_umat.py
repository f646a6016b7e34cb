"""OpenCV's T-API: functions on UMat, which run as OpenCL kernels, beside the same on arrays.

usage: opencv_umat.py PICTURE

Prints how many times out of how many each agrees, in pixels. OPENCV_OPENCL_DEVICE=:CPU: takes a processor.
"""

import sys

import cv2
import numpy as np

KERNEL = np.ones((5, 5), np.uint8)
TURN = cv2.getRotationMatrix2D((200, 150), 30, 0.8)
TILT = np.float64([[1, 0.1, 3], [0.05, 1, 5], [1e-4, 2e-4, 1]])


def functions(grey, other):
    """Names, and functions of a colour picture; grey pictures are made by the same device."""
    return {
        "cvtColor": lambda a: cv2.cvtColor(a, cv2.COLOR_BGR2GRAY),
        "cvtColor HSV": lambda a: cv2.cvtColor(a, cv2.COLOR_BGR2HSV),
        "GaussianBlur": lambda a: cv2.GaussianBlur(a, (7, 7), 1.5),
        "blur": lambda a: cv2.blur(a, (5, 5)),
        "medianBlur": lambda a: cv2.medianBlur(a, 5),
        "bilateralFilter": lambda a: cv2.bilateralFilter(grey(a), 7, 40, 40),
        "filter2D": lambda a: cv2.filter2D(a, -1, KERNEL.astype(np.float32) / 25),
        "sepFilter2D": lambda a: cv2.sepFilter2D(a, -1, KERNEL[0] / 5.0, KERNEL[0] / 5.0),
        "Sobel": lambda a: cv2.Sobel(grey(a), cv2.CV_16S, 1, 0),
        "Laplacian": lambda a: cv2.Laplacian(grey(a), cv2.CV_16S),
        "Canny": lambda a: cv2.Canny(grey(a), 50, 150),
        "erode": lambda a: cv2.erode(a, KERNEL),
        "dilate": lambda a: cv2.dilate(a, KERNEL),
        "resize": lambda a: cv2.resize(a, (333, 222)),
        "resize area": lambda a: cv2.resize(a, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA),
        "pyrDown": cv2.pyrDown,
        "pyrUp": cv2.pyrUp,
        "warpAffine": lambda a: cv2.warpAffine(a, TURN, (400, 300)),
        "warpPerspective": lambda a: cv2.warpPerspective(a, TILT, (400, 300)),
        "threshold": lambda a: cv2.threshold(grey(a), 100, 255, cv2.THRESH_BINARY)[1],
        "equalizeHist": lambda a: cv2.equalizeHist(grey(a)),
        "calcHist": lambda a: cv2.calcHist([grey(a)], [0], None, [256], [0, 256]),
        "integral": lambda a: cv2.integral(grey(a)),
        "matchTemplate": lambda a: cv2.matchTemplate(grey(a), grey(other), cv2.TM_CCORR_NORMED),
        "cornerHarris": lambda a: cv2.cornerHarris(grey(a), 2, 3, 0.04),
        "add": lambda a: cv2.add(a, a),
        "absdiff": lambda a: cv2.absdiff(a, cv2.flip(a, 1)),
        "addWeighted": lambda a: cv2.addWeighted(a, 0.3, a, 0.6, 2),
        "bitwise_xor": lambda a: cv2.bitwise_xor(a, cv2.flip(a, 0)),
        "split, merge": lambda a: cv2.merge(cv2.split(a)[::-1]),
        "transpose": cv2.transpose,
        "rotate": lambda a: cv2.rotate(a, cv2.ROTATE_180),
        "normalize": lambda a: cv2.normalize(grey(a), None, 0, 255, cv2.NORM_MINMAX),
        "LUT": lambda a: cv2.LUT(a, np.arange(255, -1, -1, np.uint8)),
        "inRange": lambda a: cv2.inRange(a, (20, 20, 20), (150, 150, 150)),
        "dft": lambda a: cv2.dft(np.float32(np.eye(256)) if isinstance(a, np.ndarray)
                                 else cv2.UMat(np.float32(np.eye(256))), flags=cv2.DFT_COMPLEX_OUTPUT),
        "gemm": lambda a: cv2.gemm(*[m if isinstance(a, np.ndarray) else cv2.UMat(m)
                                     for m in [np.float32(np.eye(96) * 2)] * 2], 1, None, 0),
        "remap": lambda a: cv2.remap(a, *np.float32(np.meshgrid(np.arange(200), np.arange(100))),
                                     cv2.INTER_LINEAR),
        "optical flow": lambda a: cv2.calcOpticalFlowFarneback(
            grey(a), cv2.flip(grey(a), 1), None, 0.5, 2, 9, 2, 5, 1.1, 0),
        "mean": lambda a: np.float64(cv2.mean(a)),
        "minMaxLoc": lambda a: np.float64(cv2.minMaxLoc(grey(a))[:2]),
        "norm": lambda a: np.float64([cv2.norm(a), cv2.norm(a, cv2.NORM_L1)]),
        "countNonZero": lambda a: np.float64([cv2.countNonZero(grey(a))]),
    }


def main():
    picture = cv2.imread(sys.argv[1])
    cv2.ocl.setUseOpenCL(True)
    if not cv2.ocl.useOpenCL():
        sys.exit("OpenCV takes no OpenCL device: set OPENCV_OPENCL_DEVICE=:CPU:")
    part = picture[40:72, 50:90].copy()

    def grey(array):
        return cv2.cvtColor(array, cv2.COLOR_BGR2GRAY)

    on_host = functions(grey, part)
    on_device = functions(grey, cv2.UMat(part))
    for name in on_host:
        for _ in range(3):
            wanted = np.float64(on_host[name](picture))
            found = on_device[name](cv2.UMat(picture))
            found = np.float64(found.get() if isinstance(found, cv2.UMat) else found)
        near = np.isclose(wanted, found, rtol=1e-3, atol=1.01)
        print(f"{name}: {near.sum()} of {wanted.size}, {found.sum():.6g}")


main()
