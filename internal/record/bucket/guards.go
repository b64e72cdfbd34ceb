package bucket

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/record"
)

func (g *gcs) guards(ctx context.Context) []record.Finding {
	bucket, err := do(ctx, g, func(ctx context.Context) (*storage.Bucket, error) {
		return g.api.Buckets.Get(g.bucket).Fields("versioning", "retentionPolicy", "softDeletePolicy", "lifecycle").
			Context(ctx).Do()
	})
	if err != nil {
		return []record.Finding{{Level: record.Warn, Subject: "deletion",
			What: "cannot tell whether the bucket keeps versions or deletes objects " +
				"by rule: " +
				"that needs storage.buckets.get: " + err.Error()}}
	}
	return judgeRules(bucket, g.prefix)
}

// judgeRules turns what a bucket says of how long objects stay into findings.
func judgeRules(b *storage.Bucket, prefix string) []record.Finding {
	var out []record.Finding
	retained := b.RetentionPolicy != nil && b.RetentionPolicy.RetentionPeriod > 0
	switch {
	case b.Versioning != nil && b.Versioning.Enabled:
		out = append(out, record.Finding{Level: record.OK, Subject: "deletion",
			What: "the bucket keeps older versions of objects"})
	case b.SoftDeletePolicy != nil && b.SoftDeletePolicy.RetentionDurationSeconds > 0:
		out = append(out, record.Finding{Level: record.OK, Subject: "deletion",
			What: fmt.Sprintf("deleted objects can be restored for %d days",
				b.SoftDeletePolicy.RetentionDurationSeconds/86400)})
	case !retained:
		out = append(out, record.Finding{Level: record.Warn, Subject: "deletion",
			What: "the bucket keeps neither versions nor deleted objects: " +
				"turn on object versioning"})
	}
	if retained {
		out = append(out, record.Finding{Level: record.Warn, Subject: "deletion",
			What: "the bucket's retention policy protects the record, but also " +
				"refuses " +
				"to overwrite marks/: object versioning protects it without that"})
	}
	if b.Lifecycle == nil {
		return out
	}
	for _, rule := range b.Lifecycle.Rule {
		if deletesRecord(rule, prefix) {
			out = append(out, record.Finding{Level: record.Fail, Subject: "deletion",
				What: fmt.Sprintf("a lifecycle rule deletes objects of the record: "+
					"limit it to the prefix %ssnapshots/ or remove it", prefix)})
		}
	}
	return out
}

// deletesRecord reports whether the rule can delete a live object of the record under prefix that is not a snapshot.
// A number of newer versions that is 0 limits nothing: a live object has as many. Nor does a number of days since
// there is a newer one: that lets no version stay, and what is deleted by mistake is gone.
func deletesRecord(r *storage.BucketLifecycleRule, prefix string) bool {
	if r.Action == nil || r.Action.Type != "Delete" || r.Condition == nil {
		return false
	}
	c := r.Condition
	if c.DaysSinceNoncurrentTime > 0 || c.NumNewerVersions > 0 || c.IsLive != nil && !*c.IsLive {
		return false // only older versions
	}
	for _, p := range c.MatchesPrefix {
		if strings.HasPrefix(prefix, p) || (strings.HasPrefix(p, prefix) &&
			!strings.HasPrefix(p, prefix+"snapshots/")) {
			return true
		}
	}
	return len(c.MatchesPrefix) == 0
}
