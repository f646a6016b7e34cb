// Includes all of Weir's public API that most programs need. Not included are
// <weir/report.h> (reports on traces), <weir/inspect.h> (configurations and modules),
// <weir/patterns/*.h>, and <weir/module/*.h> (for authors of modules).
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/buffer.h>
#include <weir/comm.h>
#include <weir/common.h>
#include <weir/config.h>
#include <weir/device.h>
#include <weir/dlpack.h>
#include <weir/event.h>
#include <weir/graph.h>
#include <weir/image.h>
#include <weir/interop.h>
#include <weir/launch.h>
#include <weir/log.h>
#include <weir/migration.h>
#include <weir/pool.h>
#include <weir/program.h>
#include <weir/queue.h>
#include <weir/region.h>
#include <weir/runtime.h>
#include <weir/short.h>
#include <weir/status.h>

#endif
