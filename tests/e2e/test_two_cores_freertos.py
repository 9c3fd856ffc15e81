"""Kernels shared by both cores of an ESP32, by tasks of FreeRTOS: threads stand in for these."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc.registry import resolve
from htvm.firmware.packages import FLAGS
from htvm.tools.cli.arguments import open_model
from tests.models import MODELS, golden
from tests.tools import tool

TWO = "esp32-p4:cores=2"

# What ESP-IDF's FreeRTOS has of these names, on two threads; a pipe is a semaphore.
_FREERTOS = """
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef portNUM_PROCESSORS
#define portNUM_PROCESSORS 2
#endif
#define configMINIMAL_STACK_SIZE 1536
#define portMAX_DELAY UINT32_MAX
typedef int BaseType_t;
typedef unsigned UBaseType_t;
typedef uint8_t StackType_t;
typedef struct { pthread_t thread; } StaticTask_t;
typedef StaticTask_t *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);
typedef struct { int ends[2]; } StaticSemaphore_t;
typedef StaticSemaphore_t *SemaphoreHandle_t;
static inline void check(int holds)
{
    if (!holds) {
        abort();
    }
}
static inline BaseType_t xPortGetCoreID(void) { return 0; }
static inline UBaseType_t uxTaskPriorityGet(TaskHandle_t task)
{
    check(task == NULL);
    return 1;
}
static inline SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *semaphore)
{
    check(pipe(semaphore->ends) == 0);
    return semaphore;
}
static inline BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
    return write(semaphore->ends[1], "", 1) == 1;
}
static inline BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, uint32_t ticks)
{
    char byte;
    check(ticks == portMAX_DELAY);
    return read(semaphore->ends[0], &byte, 1) == 1;
}
typedef struct { TaskFunction_t code; void *parameter; } htvm_started_t;
static inline void *htvm_start(void *given)
{
    const htvm_started_t *const started = given;
    started->code(started->parameter);
    return NULL;
}
static inline TaskHandle_t xTaskCreateStaticPinnedToCore(
    TaskFunction_t code, const char *name, uint32_t bytes, void *parameter, UBaseType_t priority,
    StackType_t *stack, StaticTask_t *task, BaseType_t core)
{
    static htvm_started_t started;
    check(priority == 1 && core == 1 && stack != NULL);
    printf("task %s on core %d\\n", name, core);
    printf("%u B of stack for kernels\\n", (unsigned)bytes - configMINIMAL_STACK_SIZE);
    started = (htvm_started_t){code, parameter};
    check(pthread_create(&task->thread, NULL, htvm_start, &started) == 0);
    return task;
}
"""

_MAIN = "void app_main(void);\nint main(void) { app_main(); return 0; }\n"
_STRICT = ("-Wall", "-Wextra", "-Werror", "-pthread", "-DESP_PLATFORM")

# gcc says of fences that its sanitizer does not follow them; it follows the pipes.
_THREADS = ("-g", "-O1", "-fsanitize=thread")


@pytest.fixture(scope="module")
def component(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = htvm.build(open_model("zoo:digits"), TWO)
    return module.export(tmp_path_factory.mktemp("two") / "net", kind="esp-idf")


def checked(package: Path, compiler: str, *flags: str) -> str:
    """Compile a component and its example with a stand-in for FreeRTOS, and run them."""
    folder = package.parent
    (folder / "freertos").mkdir(exist_ok=True)
    (folder / "freertos" / "FreeRTOS.h").write_text(f"#pragma once\n{_FREERTOS}")
    text = '#pragma once\n#include "freertos/FreeRTOS.h"\n'
    for name in ("task.h", "semphr.h"):
        (folder / "freertos" / name).write_text(text)
    starter, example = folder / "main.c", package / "examples/check/main"
    starter.write_text(_MAIN)
    sources = [*sorted(package.glob("src/*.c")), *sorted(example.glob("*.c")), starter]
    includes = [f"-I{each}" for each in (folder, package / "include", package / "src", example)]
    program = folder / "check"
    subprocess.run(
        [tool(compiler), *FLAGS, *_STRICT, *flags, *includes, *map(str, sources), "-o", program],
        check=True, timeout=600,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "PASS" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_component_shares_kernels_with_a_task_on_the_other_core(
    compiler: str, component: Path
) -> None:
    readme = (component / "README.md").read_text()
    assert "Cores: 2, which share the kernels" in readme and "creates a task" in readme
    assert "2048 B of static stack" in readme and "pico" not in readme
    assert "task htvm on core 1\n" in checked(component, compiler)
    # On a chip with one core, or where ESP-IDF is told to use one.
    assert "task" not in checked(component, compiler, "-DportNUM_PROCESSORS=1")


def test_the_task_has_the_stack_of_the_description(component: Path, tmp_path: Path) -> None:
    """Kernels may keep arrays there, a quarter of it (`htvm.aot.parallel`)."""
    module = htvm.build(open_model("zoo:digits"), f"{TWO},cluster.worker_stack=8k")
    larger = module.export(tmp_path / "net", kind="esp-idf")
    assert "8192 B of static stack" in (larger / "README.md").read_text()
    assert "\n8192 B of stack for kernels\n" in checked(larger, "gcc")
    assert "\n2048 B of stack for kernels\n" in checked(component, "gcc")


def test_tasks_race_for_nothing(component: Path) -> None:
    checked(component, "gcc", *_THREADS, "-Wno-tsan")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("target", ["esp32-p4", TWO])
@pytest.mark.parametrize("name", MODELS)
def test_networks_equal_their_goldens(
    name: str, target: str, compiler: str, tmp_path: Path
) -> None:
    """The example compares with what TFLite Micro computes, also under the sanitizer."""
    case = golden(name)
    module, inputs = htvm.build(htvm.load(case.path), target), [case.inputs[0]]
    np.testing.assert_array_equal(module.reference(inputs)[0], case.outputs[0])
    package = module.export(tmp_path / "net", inputs, kind="esp-idf")
    assert ("task htvm on core 1\n" in checked(package, compiler)) == (target == TWO)
    if target == TWO and compiler == "gcc":
        checked(package, compiler, *_THREADS, "-Wno-tsan")


@pytest.mark.parametrize("board", ["esp32-c3", "esp32-c6", "esp32-h2"])
def test_chips_with_one_core(board: str) -> None:
    with pytest.raises(TargetError, match=f"no 2 cores on the board {board}.*: esp32, esp32-p4, "):
        resolve(f"{board}:cores=2")
