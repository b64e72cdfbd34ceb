package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// DamageFile is the file inside etcd's directory that says what was found when its database was read whole. It goes
// where the directory goes, into an archive too, and an agent that starts again, or finds no quorum for a year, need
// not find it out again.
const DamageFile = "quorate-damaged.json"

// Damage is why a database can be used by nobody.
type Damage struct {
	Text string    `json:"text"`
	Time time.Time `json:"time"`
	// Database is which file it was found in, as it was (databaseKey): one that is repaired, or another that is put in
	// its place, is not condemned.
	Database string `json:"database"`
}

// readDamage returns what is known of a directory's database; the zero value: nothing.
func readDamage(dir string) Damage {
	var d Damage
	b, err := os.ReadFile(filepath.Join(dir, DamageFile))
	if err != nil || json.Unmarshal(b, &d) != nil || d.Database != databaseKey(dir) {
		return Damage{}
	}
	return d
}

// databaseKey tells a database file, as it is, from another and from what it becomes when it is written to. Empty:
// there is none.
func databaseKey(dir string) string {
	info, err := os.Stat(DatabaseFile(dir))
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino // not the device, whose number may be another after a boot
	}
	return fmt.Sprintf("%d %d %d", inode, info.Size(), info.ModTime().UnixNano())
}

// FindDamage reads a stopped member's database whole. nil, and no error: it is sound. The error says why it could not
// be read to its end, which is no damage.
func FindDamage(ctx context.Context, dir string) (*Damage, error) {
	begin := time.Now()
	err := CheckPages(ctx, DatabaseFile(dir))
	if page := (*damagedPage)(nil); errors.As(err, &page) {
		return &Damage{Text: page.Error(), Time: begin, Database: databaseKey(dir)}, nil
	}
	return nil, err
}

// Save writes the damage into the directory that it is about.
func (d Damage) Save(dir string, write func(path string, data []byte, perm fs.FileMode) error) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the damage: %w", err)
	}
	return write(filepath.Join(dir, DamageFile), b, 0o600)
}

// Err is the damage as the reason why a directory cannot be opened; nil: there is none.
func (d Damage) Err() error {
	if d.Text == "" {
		return nil
	}
	return fmt.Errorf("read the database: %s", d.Text)
}
