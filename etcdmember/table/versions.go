package table

import (
	"fmt"
	"slices"
)

// Undecided is what a member says of its cluster's version before there is one.
const Undecided = "not_decided"

// PeersAnswered: one that was asked on its peer port has answered there.
func (f *Facts) PeersAnswered() bool {
	return slices.ContainsFunc(f.Answers, func(a Answer) bool { return a.ClusterVersion != "" })
}

// FindVersions finds the cluster's version, which is undecided for a moment after a seed, and the lowest of its
// members.
func (f *Facts) FindVersions() {
	for _, a := range f.Answers {
		if older(f.ClusterVersion, a.ClusterVersion) || f.ClusterVersion == "" && a.ClusterVersion != Undecided {
			f.ClusterVersion = a.ClusterVersion
		}
		if a.Version != "" && (f.MemberVersion == "" || older(a.Version, f.MemberVersion)) {
			f.MemberVersion = a.Version
		}
	}
}

// versionFault says why etcd here must not run with the cluster's version; empty: it may. A directory may go on with
// the next minor version: that is how members are upgraded, one after the other. A member that joins brings none: it
// would be a copy to another version, in the middle of an upgrade.
func versionFault(f Facts, formed bool) string {
	joins := formed && !f.Directory.Exists && !f.Directory.Running
	runs := f.ClusterVersion
	if older(runs, f.MemberVersion) || runs == "" {
		runs = f.MemberVersion // the cluster's version follows its members a few seconds later
	}
	switch {
	case older(f.EtcdVersion, f.ClusterVersion):
		return fmt.Sprintf("etcd here is %s and the cluster's version is %s: this image is too old", f.EtcdVersion,
			f.ClusterVersion)
	case joins && older(f.EtcdVersion, runs):
		return fmt.Sprintf("etcd here is %s and the cluster's members run %s: this image is too old to join",
			f.EtcdVersion, runs)
	case joins && older(runs, f.EtcdVersion):
		return fmt.Sprintf("etcd here is %s and the cluster's version is %s: an empty replica joins with the version "+
			"of the others; upgrade those with their disks first, or use their image",
			f.EtcdVersion, runs)
	}
	return ""
}

// SameMinor: both are known, and of one minor version. Of two that nobody knows, nothing is the same.
func SameMinor(a, b string) bool {
	aMajor, aMinor, ok := minorOf(a)
	bMajor, bMinor, bOK := minorOf(b)
	return ok && bOK && aMajor == bMajor && aMinor == bMinor
}

// older compares two versions "a.b.c" by major and minor, as etcd's own guard does. An unknown version is not older.
func older(a, b string) bool {
	aMajor, aMinor, ok := minorOf(a)
	bMajor, bMinor, bOK := minorOf(b)
	return ok && bOK && (aMajor < bMajor || aMajor == bMajor && aMinor < bMinor)
}

// minorOf are the first two numbers of a version; not ok: it is unknown.
func minorOf(version string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
