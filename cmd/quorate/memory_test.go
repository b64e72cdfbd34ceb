package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestMemoryThatOnlyTheStartNeededIsGivenBack(t *testing.T) {
	before := residentFileKiB(t)
	if err := giveBackMemory(); err != nil {
		t.Fatal(err)
	}
	after := residentFileKiB(t)
	t.Logf("pages of files in memory: %d KiB before, %d KiB after", before, after)
	if after > before/2 {
		t.Errorf("%d KiB of files are resident, of %d KiB before", after, before)
	}
	// What was given back comes again by itself: the program still works.
	if code := run([]string{"--version"}, io.Discard, io.Discard); code != exitOK {
		t.Errorf("--version ends with %d", code)
	}
}

// The agent takes one processor, unless it is told otherwise.
func TestTheAgentTakesOneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before); debug.SetGCPercent(100) })
	for told, want := range map[string]int{"": 1, "3": 3} {
		runtime.GOMAXPROCS(3)
		t.Setenv("GOMAXPROCS", told)
		if beLean(); runtime.GOMAXPROCS(0) != want {
			t.Errorf("GOMAXPROCS=%s: %d processors, want %d", told, runtime.GOMAXPROCS(0), want)
		}
	}
}

func TestOnlyTheProgramsReadOnlyPagesAreGivenBack(t *testing.T) {
	const anonymous, clean = "Rss: 4 kB\nAnonymous:  4 kB\nVmFlags: rd mr", "Rss: 4 kB\nAnonymous:  0 kB\nVmFlags: rd mr"
	for _, c := range []struct {
		line, properties string
		want             []pages
	}{
		{"00400000-0289c000 r-xp 00000000 fe:00 9979017                            /usr/local/bin/quorate", clean,
			[]pages{{0x400000, 0x249c000}}},
		{"0289c000-0530e000 r--p 0249c000 fe:00 9979017                            /usr/local/bin/quorate", clean,
			[]pages{{0x289c000, 0x2a72000}}},
		{"0530e000-05459000 rw-p 04f0e000 fe:00 9979017                            /usr/local/bin/quorate", clean, nil},
		{"045cd000-045d0000 r--p 041cd000 fe:00 9979017                            /usr/local/bin/quorate", anonymous, nil},
		{"7ff817e00000-7ffa57e00000 r--s 00000000 07:06 15                         /var/lib/quorate/db", clean, nil},
		{"c000000000-c001400000 rw-p 00000000 00:00 0", anonymous, nil},
		{"7ffc1000-7ffc2000 r-xp 00000000 00:00 0    [vdso]", clean, nil},
	} {
		if got := programPages(c.line+"\n"+c.properties+"\n", "/usr/local/bin/quorate"); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %x, want %x", c.line, got, c.want)
		}
	}
}

// What a dynamic linker has written stays: a program with cgo calls the C library by it, also to get more memory.
func TestMemoryCanBeTakenAfterItWasGivenBack(t *testing.T) {
	if err := giveBackMemory(); err != nil {
		t.Fatal(err)
	}
	took := make([][]byte, 64)
	for i := range took { // from the system: nothing of this size was given back
		took[i] = make([]byte, 8<<20)
		took[i][i] = 1
	}
	runtime.KeepAlive(took)
}

func residentFileKiB(t *testing.T) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kib
}
