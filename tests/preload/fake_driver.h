// Control of the fake libcuda.so.1: a driver without a device. Every entry point counts its calls and returns a code
// made of its arguments, except those that hand out memory, contexts and addresses, which behave as a driver's do.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Calls that reached the driver, by exported symbol; ~0 if there is no such symbol.
std::uint64_t fake_calls(const char* symbol);
// The driver's own function behind an exported symbol, reached without any look-up that could be interposed; null if
// there is none.
void* fake_export(const char* symbol);
// The next call of the symbol returns this code and does nothing else.
void fake_fail_next(const char* symbol, int code);
// cuGetProcAddress answers with addresses that are not those of the exported symbols.
void fake_hide_exports(bool hide);
// A number made of all arguments of this thread's last call of an entry point that only mixes them.
std::uint64_t fake_last_arguments();
// Device bytes that the driver has handed out and not taken back.
std::uint64_t fake_live_bytes();

}  // extern "C"
