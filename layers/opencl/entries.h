// The functions of an OpenCL loader's table, in its order, and what the layer does about each:
//
//   PASSED   it orders no commands and uses no memory: the program's calls go to the driver
//   COMMAND  it enqueues a command of that work; use_* of calls_commands.c says what it uses
//   MAP      it enqueues one that gives the host a part of memory
//   OBJECT   calls_objects.c does something
//     MAKE     with what the driver made, of that type
//     BEFORE   before the driver's call, which returns that type
//     AFTER    after it, if it returned CL_SUCCESS
//     RETAIN, RELEASE   as they say, of that enum object_kind
//     LOST     it counts the call, which uses memory in ways that are not followed, to tell that at the end
//     OWN      in a function of its own, which returns that type
//
// The parameters follow, as members of the struct call of that file.
#ifndef WEIR_LAYERS_OPENCL_ENTRIES_H
#define WEIR_LAYERS_OPENCL_ENTRIES_H

#define LAYER_WAITS wait_count, waits, event

#define LAYER_ENTRIES(PASSED, OBJECT, COMMAND, MAP)                                                \
    PASSED(clGetPlatformIDs)                                                                       \
    PASSED(clGetPlatformInfo)                                                                      \
    PASSED(clGetDeviceIDs)                                                                         \
    PASSED(clGetDeviceInfo)                                                                        \
    OBJECT(clCreateContext, BEFORE, cl_context, start, context_properties, count, devices, notify, \
           user, code)                                                                             \
    OBJECT(clCreateContextFromType, BEFORE, cl_context, start, context_properties, flags, notify,  \
           user, code)                                                                             \
    PASSED(clRetainContext)                                                                        \
    PASSED(clReleaseContext)                                                                       \
    PASSED(clGetContextInfo)                                                                       \
    OBJECT(clCreateCommandQueue, OWN, cl_command_queue)                                            \
    OBJECT(clRetainCommandQueue, RETAIN, QUEUE, queue)                                             \
    OBJECT(clReleaseCommandQueue, RELEASE, QUEUE, queue)                                           \
    OBJECT(clGetCommandQueueInfo, AFTER, hide_times, queue, name, size, value, out_size)           \
    OBJECT(clSetCommandQueueProperty, LOST, cl_int, queue, flags, enable, out_flags)               \
    OBJECT(clCreateBuffer, MAKE, cl_mem, add_memory, context, flags, size, host, code)             \
    OBJECT(clCreateImage2D, MAKE, cl_mem, add_memory, context, flags, format, width, height, row,  \
           host, code)                                                                             \
    OBJECT(clCreateImage3D, MAKE, cl_mem, add_memory, context, flags, format, width, height,       \
           depth, row, slice, host, code)                                                          \
    OBJECT(clRetainMemObject, RETAIN, MEMORY, memory)                                              \
    OBJECT(clReleaseMemObject, RELEASE, MEMORY, memory)                                            \
    PASSED(clGetSupportedImageFormats)                                                             \
    PASSED(clGetMemObjectInfo)                                                                     \
    PASSED(clGetImageInfo)                                                                         \
    PASSED(clCreateSampler)                                                                        \
    PASSED(clRetainSampler)                                                                        \
    PASSED(clReleaseSampler)                                                                       \
    PASSED(clGetSamplerInfo)                                                                       \
    OBJECT(clCreateProgramWithSource, MAKE, cl_program, add_program, context, count, texts,        \
           lengths, code)                                                                          \
    OBJECT(clCreateProgramWithBinary, MAKE, cl_program, add_program, context, count, devices,      \
           lengths, binaries, states, code)                                                        \
    OBJECT(clRetainProgram, RETAIN, PROGRAM, program)                                              \
    OBJECT(clReleaseProgram, RELEASE, PROGRAM, program)                                            \
    OBJECT(clBuildProgram, BEFORE, cl_int, keep_options, program, count, devices, options, built,  \
           user)                                                                                   \
    PASSED(clUnloadCompiler)                                                                       \
    OBJECT(clGetProgramInfo, AFTER, keep_binaries, program, name, size, value, out_size)           \
    PASSED(clGetProgramBuildInfo)                                                                  \
    OBJECT(clCreateKernel, MAKE, cl_kernel, add_kernel, program, text, code)                       \
    OBJECT(clCreateKernelsInProgram, OWN, cl_int)                                                  \
    OBJECT(clRetainKernel, RETAIN, KERNEL, kernel)                                                 \
    OBJECT(clReleaseKernel, RELEASE, KERNEL, kernel)                                               \
    OBJECT(clSetKernelArg, AFTER, set_argument, kernel, index, size, from)                         \
    PASSED(clGetKernelInfo)                                                                        \
    PASSED(clGetKernelWorkGroupInfo)                                                               \
    OBJECT(clWaitForEvents, AFTER, learn_events, count, events)                                    \
    OBJECT(clGetEventInfo, AFTER, learn_status, this_event, name, size, value, out_size)           \
    OBJECT(clRetainEvent, RETAIN, EVENT, this_event)                                               \
    OBJECT(clReleaseEvent, RELEASE, EVENT, this_event)                                             \
    OBJECT(clGetEventProfilingInfo, OWN, cl_int)                                                   \
    PASSED(clFlush)                                                                                \
    OBJECT(clFinish, AFTER, learn_all, queue)                                                      \
    COMMAND(clEnqueueReadBuffer, TO_HOST, sides, queue, from, blocking, from_offset, size,         \
            to_host, LAYER_WAITS)                                                                  \
    COMMAND(clEnqueueWriteBuffer, TO_DEVICE, sides, queue, to, blocking, to_offset, size,          \
            from_host, LAYER_WAITS)                                                                \
    COMMAND(clEnqueueCopyBuffer, ON_DEVICE, sides, queue, from, to, from_offset, to_offset, size,  \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueReadImage, TO_HOST, sides, queue, from_image, blocking, from_origin, region,  \
            host_row, host_slice, to_host, LAYER_WAITS)                                            \
    COMMAND(clEnqueueWriteImage, TO_DEVICE, sides, queue, to_image, blocking, to_origin, region,   \
            host_row, host_slice, from_host, LAYER_WAITS)                                          \
    COMMAND(clEnqueueCopyImage, ON_DEVICE, sides, queue, from_image, to_image, from_origin,        \
            to_origin, region, LAYER_WAITS)                                                        \
    COMMAND(clEnqueueCopyImageToBuffer, ON_DEVICE, sides, queue, from_image, to, from_origin,      \
            region, to_offset, LAYER_WAITS)                                                        \
    COMMAND(clEnqueueCopyBufferToImage, ON_DEVICE, sides, queue, from, to_image, from_offset,      \
            to_origin, region, LAYER_WAITS)                                                        \
    MAP(clEnqueueMapBuffer, queue, from, blocking, flags, from_offset, size, LAYER_WAITS, code)    \
    MAP(clEnqueueMapImage, queue, from_image, blocking, flags, from_origin, region, out_row,       \
        out_slice, LAYER_WAITS, code)                                                              \
    COMMAND(clEnqueueUnmapMemObject, TO_DEVICE, unmap, queue, from, address, LAYER_WAITS)          \
    COMMAND(clEnqueueNDRangeKernel, KERNEL, kernel, queue, kernel, dimensions, offsets, global,    \
            local, LAYER_WAITS)                                                                    \
    COMMAND(clEnqueueTask, KERNEL, kernel, queue, kernel, LAYER_WAITS)                             \
    COMMAND(clEnqueueNativeKernel, ON_HOST, native, queue, native, arguments, size, count,         \
            memories, places, LAYER_WAITS)                                                         \
    COMMAND(clEnqueueMarker, ON_DEVICE, marker, queue, event)                                      \
    COMMAND(clEnqueueWaitForEvents, ON_DEVICE, barrier, queue, wait_count, waits)                  \
    COMMAND(clEnqueueBarrier, ON_DEVICE, barrier, queue)                                           \
    OBJECT(clGetExtensionFunctionAddress, MAKE, void *, count_extension, text)                     \
    PASSED(clCreateFromGLBuffer)                                                                   \
    PASSED(clCreateFromGLTexture2D)                                                                \
    PASSED(clCreateFromGLTexture3D)                                                                \
    PASSED(clCreateFromGLRenderbuffer)                                                             \
    PASSED(clGetGLObjectInfo)                                                                      \
    PASSED(clGetGLTextureInfo)                                                                     \
    OBJECT(clEnqueueAcquireGLObjects, LOST, cl_int, queue, count, memories, wait_count, waits,     \
           event)                                                                                  \
    OBJECT(clEnqueueReleaseGLObjects, LOST, cl_int, queue, count, memories, wait_count, waits,     \
           event)                                                                                  \
    PASSED(clGetGLContextInfoKHR)                                                                  \
    PASSED(clGetDeviceIDsFromD3D10KHR)                                                             \
    PASSED(clCreateFromD3D10BufferKHR)                                                             \
    PASSED(clCreateFromD3D10Texture2DKHR)                                                          \
    PASSED(clCreateFromD3D10Texture3DKHR)                                                          \
    PASSED(clEnqueueAcquireD3D10ObjectsKHR)                                                        \
    PASSED(clEnqueueReleaseD3D10ObjectsKHR)                                                        \
    OBJECT(clSetEventCallback, OWN, cl_int)                                                        \
    OBJECT(clCreateSubBuffer, MAKE, cl_mem, add_memory, memory, flags, name, from, code)           \
    PASSED(clSetMemObjectDestructorCallback)                                                       \
    OBJECT(clCreateUserEvent, MAKE, cl_event, add_user_event, context, code)                       \
    OBJECT(clSetUserEventStatus, BEFORE, cl_int, set_user_event, this_event, status)               \
    COMMAND(clEnqueueReadBufferRect, TO_HOST, sides, queue, from, blocking, from_origin,           \
            host_origin, region, from_row, from_slice, host_row, host_slice, to_host, LAYER_WAITS) \
    COMMAND(clEnqueueWriteBufferRect, TO_DEVICE, sides, queue, to, blocking, to_origin,            \
            host_origin, region, to_row, to_slice, host_row, host_slice, from_host, LAYER_WAITS)   \
    COMMAND(clEnqueueCopyBufferRect, ON_DEVICE, sides, queue, from, to, from_origin, to_origin,    \
            region, from_row, from_slice, to_row, to_slice, LAYER_WAITS)                           \
    PASSED(clCreateSubDevicesEXT)                                                                  \
    PASSED(clRetainDeviceEXT)                                                                      \
    PASSED(clReleaseDeviceEXT)                                                                     \
    OBJECT(clCreateEventFromGLsyncKHR, LOST, cl_event, context, gl_sync, code)                     \
    PASSED(clCreateSubDevices)                                                                     \
    PASSED(clRetainDevice)                                                                         \
    PASSED(clReleaseDevice)                                                                        \
    OBJECT(clCreateImage, MAKE, cl_mem, add_memory, context, flags, format, shape, host, code)     \
    PASSED(clCreateProgramWithBuiltInKernels)                                                      \
    OBJECT(clCompileProgram, BEFORE, cl_int, keep_options, program, count, devices, options,       \
           header_count, headers, texts, built, user)                                              \
    PASSED(clLinkProgram)                                                                          \
    PASSED(clUnloadPlatformCompiler)                                                               \
    PASSED(clGetKernelArgInfo)                                                                     \
    COMMAND(clEnqueueFillBuffer, ON_DEVICE, sides, queue, to, pattern, pattern_size, to_offset,    \
            size, LAYER_WAITS)                                                                     \
    COMMAND(clEnqueueFillImage, ON_DEVICE, sides, queue, to_image, pattern, to_origin, region,     \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueMigrateMemObjects, TO_DEVICE, nothing, queue, count, memories, flags,         \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueMarkerWithWaitList, ON_DEVICE, marker, queue, LAYER_WAITS)                    \
    COMMAND(clEnqueueBarrierWithWaitList, ON_DEVICE, barrier, queue, LAYER_WAITS)                  \
    OBJECT(clGetExtensionFunctionAddressForPlatform, MAKE, void *, count_extension, platform,      \
           text)                                                                                   \
    PASSED(clCreateFromGLTexture)                                                                  \
    PASSED(clGetDeviceIDsFromD3D11KHR)                                                             \
    PASSED(clCreateFromD3D11BufferKHR)                                                             \
    PASSED(clCreateFromD3D11Texture2DKHR)                                                          \
    PASSED(clCreateFromD3D11Texture3DKHR)                                                          \
    PASSED(clCreateFromDX9MediaSurfaceKHR)                                                         \
    PASSED(clEnqueueAcquireD3D11ObjectsKHR)                                                        \
    PASSED(clEnqueueReleaseD3D11ObjectsKHR)                                                        \
    PASSED(clGetDeviceIDsFromDX9MediaAdapterKHR)                                                   \
    PASSED(clEnqueueAcquireDX9MediaSurfacesKHR)                                                    \
    PASSED(clEnqueueReleaseDX9MediaSurfacesKHR)                                                    \
    PASSED(clCreateFromEGLImageKHR)                                                                \
    OBJECT(clEnqueueAcquireEGLObjectsKHR, LOST, cl_int, queue, count, memories, wait_count, waits, \
           event)                                                                                  \
    OBJECT(clEnqueueReleaseEGLObjectsKHR, LOST, cl_int, queue, count, memories, wait_count, waits, \
           event)                                                                                  \
    OBJECT(clCreateEventFromEGLSyncKHR, LOST, cl_event, context, egl_sync, egl_display, code)      \
    OBJECT(clCreateCommandQueueWithProperties, OWN, cl_command_queue)                              \
    PASSED(clCreatePipe)                                                                           \
    PASSED(clGetPipeInfo)                                                                          \
    OBJECT(clSVMAlloc, MAKE, void *, add_svm, context, flags, size, alignment)                     \
    OBJECT(clSVMFree, OWN, void)                                                                   \
    COMMAND(clEnqueueSVMFree, ON_DEVICE, svm_free, queue, count, addresses, freeing, arguments,    \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueSVMMemcpy, ON_DEVICE, svm, queue, blocking, address, source, size,            \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueSVMMemFill, ON_DEVICE, svm, queue, address, pattern, pattern_size, size,      \
            LAYER_WAITS)                                                                           \
    COMMAND(clEnqueueSVMMap, TO_HOST, svm_map, queue, blocking, flags, address, size, LAYER_WAITS) \
    COMMAND(clEnqueueSVMUnmap, TO_DEVICE, svm_unmap, queue, address, LAYER_WAITS)                  \
    PASSED(clCreateSamplerWithProperties)                                                          \
    OBJECT(clSetKernelArgSVMPointer, AFTER, set_svm, kernel, index, from)                          \
    OBJECT(clSetKernelExecInfo, AFTER, set_pointers, kernel, name, size, from)                     \
    PASSED(clGetKernelSubGroupInfoKHR)                                                             \
    OBJECT(clCloneKernel, MAKE, cl_kernel, clone_kernel, kernel, code)                             \
    OBJECT(clCreateProgramWithIL, MAKE, cl_program, add_program, context, from, size, code)        \
    COMMAND(clEnqueueSVMMigrateMem, TO_DEVICE, nothing, queue, count, places, sizes, flags,        \
            LAYER_WAITS)                                                                           \
    PASSED(clGetDeviceAndHostTimer)                                                                \
    PASSED(clGetHostTimer)                                                                         \
    PASSED(clGetKernelSubGroupInfo)                                                                \
    PASSED(clSetDefaultDeviceCommandQueue)                                                         \
    PASSED(clSetProgramReleaseCallback)                                                            \
    PASSED(clSetProgramSpecializationConstant)                                                     \
    OBJECT(clCreateBufferWithProperties, MAKE, cl_mem, add_memory, context, memory_properties,     \
           flags, size, host, code)                                                                \
    OBJECT(clCreateImageWithProperties, MAKE, cl_mem, add_memory, context, memory_properties,      \
           flags, format, shape, host, code)                                                       \
    PASSED(clSetContextDestructorCallback)

// X(a), X(b) for up to 14 parameters.
#define LAYER_EACH(X, ...) \
    LAYER_EACH_OF(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(X, __VA_ARGS__)
#define LAYER_EACH_OF(a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) LAYER_EACH_##count
#define LAYER_EACH_1(X, a) X(a)
#define LAYER_EACH_2(X, a, ...) X(a), LAYER_EACH_1(X, __VA_ARGS__)
#define LAYER_EACH_3(X, a, ...) X(a), LAYER_EACH_2(X, __VA_ARGS__)
#define LAYER_EACH_4(X, a, ...) X(a), LAYER_EACH_3(X, __VA_ARGS__)
#define LAYER_EACH_5(X, a, ...) X(a), LAYER_EACH_4(X, __VA_ARGS__)
#define LAYER_EACH_6(X, a, ...) X(a), LAYER_EACH_5(X, __VA_ARGS__)
#define LAYER_EACH_7(X, a, ...) X(a), LAYER_EACH_6(X, __VA_ARGS__)
#define LAYER_EACH_8(X, a, ...) X(a), LAYER_EACH_7(X, __VA_ARGS__)
#define LAYER_EACH_9(X, a, ...) X(a), LAYER_EACH_8(X, __VA_ARGS__)
#define LAYER_EACH_10(X, a, ...) X(a), LAYER_EACH_9(X, __VA_ARGS__)
#define LAYER_EACH_11(X, a, ...) X(a), LAYER_EACH_10(X, __VA_ARGS__)
#define LAYER_EACH_12(X, a, ...) X(a), LAYER_EACH_11(X, __VA_ARGS__)
#define LAYER_EACH_13(X, a, ...) X(a), LAYER_EACH_12(X, __VA_ARGS__)
#define LAYER_EACH_14(X, a, ...) X(a), LAYER_EACH_13(X, __VA_ARGS__)

// What the functions are made of: parameters, `call`, and the driver's call with what that has then.
#define LAYER_PARAMETER(name) __typeof__(((struct call *)NULL)->name) name
#define LAYER_MEMBER(name) .name = name
#define LAYER_ARGUMENT(name) call.name
#define LAYER_FUNCTION(result, name, ...) \
    result CL_API_CALL layer_##name(LAYER_EACH(LAYER_PARAMETER, __VA_ARGS__))
#define LAYER_CALL(...) struct call call = {LAYER_EACH(LAYER_MEMBER, __VA_ARGS__)}
#define LAYER_DRIVER(name, ...) layer.driver->name(LAYER_EACH(LAYER_ARGUMENT, __VA_ARGS__))

#define LAYER_NOTHING(...)

#endif
