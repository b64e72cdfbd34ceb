package setup

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// JudgeBucket judges the bucket of a record whose objects begin with prefix, [PREFIX/]CLUSTER/. Without a region it
// does not judge where the bucket is.
func JudgeBucket(b Bucket, name, prefix, region string) []record.Finding {
	var l list
	update := func(flags ...string) string {
		return command(append([]string{"gcloud storage buckets update gs://" + name}, flags...)...)
	}
	l.access(b, update)
	l.overwriting(b, update)
	l.deletion(b, prefix, update)
	if region != "" {
		l.location(b, region)
	}
	return l.found
}

// JudgeAbsence says that a bucket does not exist, and how it is made: in the masters' region, as JudgeBucket wants it.
func JudgeAbsence(f Facts) []record.Finding {
	words := []string{"gcloud storage buckets create gs://" + f.BucketName, "--location=" + cmp.Or(f.Region, "REGION"),
		"--uniform-bucket-level-access", "--public-access-prevention"}
	if f.Project != "" {
		words = append(words, "--project="+f.Project)
	}
	var l list
	l.add(record.Fail, subjectBucket, "it does not exist: "+f.Bucket.Fault.Text,
		"Without the record no master boots. If record.url of the document names another bucket than you meant, "+
			"correct it; the region is the masters'.", command(words...), "gcloud storage buckets update gs://"+f.BucketName+
			" --versioning")
	return l.found
}

// bucket judges the record's bucket, or says why it cannot be judged.
func (l *list) bucket(f Facts) {
	switch fault := f.Bucket.Fault; {
	case fault != nil && fault.Why == Absent:
		l.found = append(l.found, JudgeAbsence(f)...)
	case answered(l, subjectBucket, "storage.buckets.get", f.Bucket):
		l.found = append(l.found, JudgeBucket(f.Bucket.Answer, f.BucketName, f.Prefix, f.Region)...)
	}
}

// updater is the command that changes the bucket.
type updater func(flags ...string) string

func (l *list) access(b Bucket, update updater) {
	before := len(l.found)
	if !b.UniformAccess {
		l.add(record.Fail, subjectBucket, "uniform bucket-level access is off",
			"Conditions need it, and only a condition keeps the masters from deleting what decides.",
			update("--uniform-bucket-level-access"))
	}
	if !b.PublicAccessPrevented {
		l.add(record.Warn, subjectBucket, "public access is not prevented",
			"One mistake in a policy would show the record to everybody.", update("--public-access-prevention"))
	}
	if b.RequesterPays {
		l.add(record.Fail, subjectBucket, "requester pays is on",
			"The agents name no project to charge, so each of their requests is refused.",
			update("--no-requester-pays"))
	}
	if b.IPFilter {
		l.add(record.Warn, subjectBucket, "an IP filter is on",
			"A master whose address or network it does not name is refused, which reads like a missing permission.",
			update("--clear-ip-filter"))
	}
	l.okUnless(before, subjectBucket, "access is uniform, not public, and paid by the project")
}

// overwriting judges what keeps objects from being replaced: a mark is, each 30 s.
func (l *list) overwriting(b Bucket, update updater) {
	const why = "It refuses to overwrite marks/, by which disks that were set back and VMs that still run are " +
		"noticed. Object versioning protects the record without that."
	before := len(l.found)
	if b.Retention > 0 {
		l.add(record.Fail, subjectDeletion, "the bucket has a retention policy of "+days(b.Retention), why,
			update("--clear-retention-period"))
	}
	if b.EventBasedHold {
		l.add(record.Fail, subjectDeletion, "the bucket puts an event-based hold on new objects", why,
			update("--no-default-event-based-hold"))
	}
	l.okUnless(before, subjectDeletion, "no retention policy or hold keeps marks from being overwritten")
}

func (l *list) deletion(b Bucket, prefix string, update updater) {
	switch {
	case b.Versioning:
		l.ok(subjectDeletion, "the bucket keeps older versions of objects")
	case b.SoftDelete > 0:
		l.ok(subjectDeletion, "deleted objects can be restored for %s", days(b.SoftDelete))
	default:
		l.add(record.Warn, subjectDeletion, "the bucket keeps neither versions nor deleted objects",
			"An object that is deleted by mistake is gone, and an object of the record decides who may serve.",
			update("--versioning"))
	}
	old := false
	for _, rule := range b.Lifecycle {
		if rule.deletesRecord(prefix) {
			l.add(record.Fail, subjectDeletion, "a lifecycle rule deletes objects of the record",
				"A claim or an outcome that is gone can be written again, with other content. A rule may be limited "+
					"to the prefix "+prefix+"snapshots/, or to older versions.", update("--clear-lifecycle"))
		}
		old = old || rule.OldVersionsOnly
	}
	if b.Versioning && !old {
		l.add(record.Warn, subjectDeletion, "no lifecycle rule deletes older versions of objects",
			"Each master overwrites its mark and its report each 30 s, and each time a version stays for good.",
			`echo '{"rule":[{"action":{"type":"Delete"},"condition":{"isLive":false,"daysSinceNoncurrentTime":7}}]}' `+
				"> old-versions.json", update("--lifecycle-file=old-versions.json"))
	}
}

// deletesRecord reports whether the rule can delete a live object of the record under prefix that is not a snapshot.
func (r Rule) deletesRecord(prefix string) bool {
	if r.OldVersionsOnly {
		return false
	}
	for _, p := range r.Prefixes {
		if strings.HasPrefix(prefix, p) || (strings.HasPrefix(p, prefix) &&
			!strings.HasPrefix(p, prefix+record.SnapshotsFolder)) {
			return true
		}
	}
	return len(r.Prefixes) == 0
}

// location judges a bucket of a single region: a larger place may or may not hold the masters' region.
func (l *list) location(b Bucket, region string) {
	switch {
	case b.LocationType != "region":
		l.ok(subjectBucket, "it is in %s (%s)", b.Location, b.LocationType)
	case !strings.EqualFold(b.Location, region):
		l.add(record.Warn, subjectBucket, fmt.Sprintf("it is in %s, and the masters are in %s", strings.ToLower(
			b.Location),
			region), "A boot and each repair wait for two regions. A bucket cannot be moved: take another before "+
			"'quorate record init'.")
	default:
		l.ok(subjectBucket, "it is in %s, as the masters are", region)
	}
}

func days(d time.Duration) string {
	switch n := d / (24 * time.Hour); {
	case d%(24*time.Hour) != 0:
		return d.String()
	case n == 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}
