package image

import (
	"debug/pe"
	"path/filepath"
	"testing"
)

// emulator is how QEMU emulates a machine of an architecture. The firmware and its variables are in the tree of tools.
type emulator struct{ program, machine, cpu, firmware, variables string }

var emulators = map[string]emulator{
	"amd64": {"qemu-system-x86_64", "q35", "max", "usr/share/OVMF/OVMF_CODE_4M.fd", "usr/share/OVMF/OVMF_VARS_4M.fd"},
	// T2A has this processor. The newest that QEMU has signs pointers, which takes long to emulate.
	"arm64": {"qemu-system-aarch64", "virt", "neoverse-n1", "usr/share/AAVMF/AAVMF_CODE.fd",
		"usr/share/AAVMF/AAVMF_VARS.fd"},
}

// architecture is the one whose firmware starts an image.
func architecture(t *testing.T, image string) string {
	t.Helper()
	f, err := pe.Open(filepath.Join(image, "boot.efi"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	machines := map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}
	arch, known := machines[f.Machine]
	if !known {
		t.Fatalf("boot.efi is for machines of the type %x", f.Machine)
	}
	return arch
}

// manifests are those of the architectures.
var manifests = map[string]string{"amd64": master + "manifest", "arm64": master + "manifest.arm64"}
