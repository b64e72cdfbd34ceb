package datadir

import (
	"strings"
	"time"
)

const (
	// archivePrefix and archiveTime make an archive's name of the time when it was put away, in UTC and by this VM's
	// clock.
	archivePrefix = "etcd-"
	archiveTime   = "20060102T150405.000"
	// PurgingSuffix ends the name of one that is being deleted: part of it may be gone, so nobody reads it any more.
	PurgingSuffix = ".purging"
)

// ArchiveName is the name of a directory that is put away at a time.
func ArchiveName(at time.Time) string { return archivePrefix + at.UTC().Format(archiveTime) }

// ArchivedAt is the time in an archive's name.
func ArchivedAt(name string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, archivePrefix)
	t, err := time.Parse(archiveTime, rest)
	return t, ok && err == nil
}
