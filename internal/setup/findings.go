package setup

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/record"
)

// The subjects: what a finding is about.
const (
	subjectAPIs     = "apis"
	subjectBucket   = "bucket"
	subjectDeletion = "deletion"
	subjectRights   = "permissions"
	subjectOperator = "operator"
	subjectKey      = "key"
	subjectMasters  = "masters"
	subjectDisks    = "disks"
	subjectNetwork  = "network"
	subjectFirewall = "firewall"
	subjectWayOut   = "way out"
	subjectEndpoint = "endpoint"
	subjectZones    = "zones"
	subjectMetadata = "metadata"
)

// Judge judges all that is known of a project. The order is that in which a person would put things right.
func Judge(f Facts) []record.Finding {
	var l list
	f.Planned = f.placed()
	l.apis(f)
	l.operator(f)
	l.bucket(f)
	l.key(f)
	l.rights(f)
	l.zones(f)
	l.masters(f)
	l.network(f)
	l.firewall(f)
	l.wayOut(f)
	l.endpoint(f)
	l.metadata(f)
	return l.found
}

// list gathers findings.
type list struct{ found []record.Finding }

func (l *list) ok(subject, format string, args ...any) {
	l.found = append(l.found, record.Finding{Level: record.OK, Subject: subject, What: fmt.Sprintf(format, args...)})
}

// add adds what is wrong, with why that matters and the commands that mend it.
func (l *list) add(level record.Level, subject, what, why string, mend ...string) {
	l.found = append(l.found, record.Finding{Level: level, Subject: subject, What: what, Why: why, Mend: mend})
}

// okUnless adds that a subject is as it should be, where nothing was found about it since the list had so many.
func (l *list) okUnless(before int, subject, format string, args ...any) {
	if len(l.found) == before {
		l.ok(subject, format, args...)
	}
}

// answered reports whether a question has an answer, and says so where it has none. An API that is off, and what is
// absent, have findings of their own (apis, and the subject's).
func answered[T any](l *list, subject, permission string, a Asked[T]) bool {
	if a.Fault == nil {
		return true
	}
	switch a.Fault.Why {
	case Disabled: // named by apis
	case Refused:
		l.add(record.Warn, subject, "not checked: "+a.Fault.Text,
			fmt.Sprintf("who runs this needs %s for it", permission))
	case Absent:
		l.add(record.Fail, subject, "it does not exist: "+a.Fault.Text, "")
	default:
		l.add(record.Warn, subject, "not checked: "+a.Fault.Text, "")
	}
	return false
}

// apis names the APIs that are off.
func (l *list) apis(f Facts) {
	const asked = "Who may do what is asked there, and not by the masters."
	services := []struct {
		level      record.Level
		host, what string
		fault      []*Fault
	}{
		{record.Fail, "storage.googleapis.com", "The record is in a bucket.", []*Fault{f.Bucket.Fault,
			f.BucketPolicy.Fault}},
		{record.Fail, "cloudkms.googleapis.com", "The bundle of keys is sealed by Cloud KMS.", []*Fault{f.Key.Fault,
			f.KeyPolicy.Fault}},
		{record.Fail, "compute.googleapis.com", "The agents ask it whom to expect and who is gone.", []*Fault{f.VMs.Fault,
			f.Zones.Fault}},
		{record.Warn, "cloudresourcemanager.googleapis.com", asked, []*Fault{f.ProjectPolicy.Fault, f.HasOnProject.Fault}},
		{record.Warn, "iam.googleapis.com", asked, []*Fault{f.ServiceAccount.Fault, f.HasOnAccount.Fault}},
	}
	before := len(l.found)
	for _, s := range services {
		for _, fault := range s.fault {
			if fault != nil && fault.Why == Disabled {
				l.add(s.level, subjectAPIs, s.host+" is not enabled: "+fault.Text, s.what,
					command("gcloud services enable", s.host, "--project="+f.Project))
				break
			}
		}
	}
	l.okUnless(before, subjectAPIs, "no API that was asked is disabled")
}

// command joins the words of a command.
func command(words ...string) string { return strings.Join(words, " ") }
