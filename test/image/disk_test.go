package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// efiSystem is a type of partitions, as a GUID stands on the disk. rootTypes are those of an architecture's root file
// system (https://uapi-group.org/specifications/specs/discoverable_partitions_specification/).
const efiSystem = "28732ac11ff8d211ba4b00a0c93ec93b"

var rootTypes = map[string]string{"amd64": "e3bc684fcde8b14d96e7fbcaf984b709",
	"arm64": "45b021b9f01dc341af444c6f280d3fae"}

// partitionTypes are those of a disk's GPT.
func partitionTypes(t *testing.T, disk string) (types []string) {
	t.Helper()
	f, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := make([]byte, 512)
	if _, err := f.ReadAt(header, 512); err != nil || !bytes.HasPrefix(header, []byte("EFI PART")) {
		t.Fatalf("the disk has no GPT: %.8q, %v", header, err)
	}
	at, size := int64(binary.LittleEndian.Uint64(header[72:])*512), binary.LittleEndian.Uint32(header[84:])
	for i := range int64(binary.LittleEndian.Uint32(header[80:])) {
		entry := make([]byte, size)
		if _, err := f.ReadAt(entry, at+i*int64(size)); err != nil {
			t.Fatal(err)
		}
		if guid := fmt.Sprintf("%x", entry[:16]); strings.Trim(guid, "0") != "" {
			types = append(types, guid)
		}
	}
	return types
}

// firstPacked is the first file of an archive.
func firstPacked(t *testing.T, path string) *tar.Header {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	header, err := tar.NewReader(unzipped).Next()
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// section is one of boot.efi: .cmdline, .initrd.
func section(t *testing.T, image, name string) []byte {
	t.Helper()
	f, err := pe.Open(filepath.Join(image, "boot.efi"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(name)
	if s == nil {
		t.Fatalf("boot.efi has no section %s", name)
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data[:min(len(data), int(s.VirtualSize))]
}

// What GCE asks of an image, and what no emulated machine has: its own network card, and disks on NVMe.
func TestTheDiskIsOneThatGCEBoots(t *testing.T) {
	image := baked(t)
	info, err := os.Stat(filepath.Join(image, "disk.raw"))
	if err != nil || info.Size()%(1<<30) != 0 {
		t.Errorf("the disk is not of whole GiB: %v, %v", info, err)
	}
	if packed := firstPacked(t, filepath.Join(image, "quorate-master.tar.gz")); packed.Name != "disk.raw" ||
		packed.Size != info.Size() || packed.Format != tar.FormatGNU {
		t.Errorf("the archive for GCE begins with %+v", packed)
	}
	types, want := partitionTypes(t, filepath.Join(image, "disk.raw")), []string{efiSystem,
		rootTypes[architecture(t, image)]}
	if !slices.Equal(types, want) {
		t.Errorf("the partitions are of types %v, want %v", types, want)
	}
	if line := string(section(t, image, ".cmdline")); !strings.Contains(line, "console=ttyS0,") {
		t.Errorf("the kernel's command line has no serial console: %s", line)
	}

	tree := t.TempDir()
	run(t, "tar", "-C", tree, "-xf", filepath.Join(image, "root.tar"), "./usr/lib/modules")
	modules, err := filepath.Glob(filepath.Join(tree, "usr/lib/modules/*"))
	if err != nil || len(modules) != 1 {
		t.Fatalf("the modules are those of the kernels %v, %v", modules, err)
	}
	early, err := zstd.NewReader(bytes.NewReader(section(t, image, ".initrd")))
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	var initrd bytes.Buffer
	if _, err := early.WriteTo(&initrd); err != nil {
		t.Fatal(err)
	}
	builtin := read(t, filepath.Join(modules[0], "modules.builtin"))
	for _, driver := range []string{"nvme/host/nvme", "scsi/virtio_scsi", "scsi/sd_mod"} {
		name := "kernel/drivers/" + driver + ".ko"
		if !strings.Contains(builtin, name+"\n") && !bytes.Contains(initrd.Bytes(), []byte(name)) {
			t.Errorf("the root file system is not found by %s: it is not in the kernel, nor in the initrd", driver)
		}
	}
	// Google's virtual network card (gVNIC), and that of virtio, by their PCI ids.
	for driver, id := range map[string]string{"gve": "v00001AE0d00000042", "virtio_net": "virtio:d00000001"} {
		alias := regexp.MustCompile(`(?m)^alias \S*` + id + `\S* ` + driver + `$`)
		if !alias.MatchString(read(t, filepath.Join(modules[0], "modules.alias"))) {
			t.Errorf("no driver %s for a network card %s", driver, id)
		}
	}
}
