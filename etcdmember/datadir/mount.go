package datadir

import (
	"path/filepath"
	"strings"
)

// mountinfoEscapes are how proc(5) spells what would break its lines.
var mountinfoEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// MountedAt finds a mount point in the format of /proc/self/mountinfo (proc(5)): the fifth field.
func MountedAt(mountinfo, dir string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 &&
			mountinfoEscapes.Replace(fields[4]) == filepath.Clean(dir) {
			return true
		}
	}
	return false
}
