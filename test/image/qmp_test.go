package image

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
)

// qmp is QEMU's control socket: disks come and go by it while the machine runs.
type qmp struct {
	conn  net.Conn
	lines *bufio.Scanner
}

// control connects to a machine's control socket.
func (m *machine) control(t *testing.T) *qmp {
	t.Helper()
	var conn net.Conn
	m.until(t, "QEMU's control socket", func() (ok bool) {
		var err error
		conn, err = net.Dial("unix", m.socket)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	q := &qmp{conn: conn, lines: bufio.NewScanner(conn)}
	q.await(t, "QMP")
	q.do(t, "qmp_capabilities", map[string]any{})
	return q
}

// await reads until there was, for each name, a message with such a field or an event of this name. An event may come
// before the answer to the command that caused it.
func (q *qmp) await(t *testing.T, names ...string) {
	t.Helper()
	if err := q.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for q.lines.Scan() {
		var message map[string]any
		if err := json.Unmarshal(q.lines.Bytes(), &message); err != nil {
			t.Fatal(err)
		}
		if message["error"] != nil {
			t.Fatalf("QEMU: %v", message["error"])
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return message[name] != nil || message["event"] == name
		})
		if len(names) == 0 {
			return
		}
	}
	t.Fatalf("QEMU does not say %v: %v", names, q.lines.Err())
}

// do has a command executed, and awaits its events.
func (q *qmp) do(t *testing.T, command string, arguments map[string]any, events ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(q.conn, "%s\n", text); err != nil {
		t.Fatal(err)
	}
	q.await(t, append(events, "return")...)
}

// attach adds a disk as GCE does a persistent disk on SCSI, under the device name of a data disk.
func (q *qmp) attach(t *testing.T, path string, readOnly bool) {
	t.Helper()
	q.do(t, "blockdev-add", map[string]any{"driver": "raw", "node-name": "hot", "read-only": readOnly,
		"file": map[string]any{"driver": "file", "filename": path, "read-only": readOnly}})
	q.do(t, "device_add", map[string]any{"driver": "scsi-hd", "id": "hotdisk", "bus": "scsi0.0", "drive": "hot",
		"vendor": "Google", "product": "PersistentDisk", "serial": "quorate-data"})
}

// detach takes it away.
func (q *qmp) detach(t *testing.T) {
	t.Helper()
	q.do(t, "device_del", map[string]any{"id": "hotdisk"}, "DEVICE_DELETED")
	q.do(t, "blockdev-del", map[string]any{"node-name": "hot"})
}
