package settings_test

import (
	"testing"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// The roles and conditions of docs/iam.md: a master may delete, and so overwrite, marks, snapshots and reports alone.
func TestWhatAMasterMayDoInTheBucket(t *testing.T) {
	t.Parallel()
	s := settings.Whole("demo")
	broken := settings.Whole("demo")
	for n := range broken.BucketPolicy {
		if c := broken.BucketPolicy[n].Condition; c != nil {
			c.Expression = "true || " + c.Expression
		}
	}
	for _, c := range []struct {
		name, object, permission string
		in                       *settings.Settings
		want                     bool
	}{
		{"reads a claim", "demo/epochs/1/claims/0", "storage.objects.get", s, true},
		{"lists the bucket", "", "storage.objects.list", s, true},
		{"makes a claim", "demo/epochs/1/claims/0", "storage.objects.create", s, true},
		{"deletes a claim", "demo/epochs/1/claims/0", "storage.objects.delete", s, false},
		{"overwrites a mark", "demo/marks/a", "storage.objects.delete", s, true},
		{"deletes a snapshot", "demo/snapshots/1", "storage.objects.delete", s, true},
		{"overwrites a report", "demo.reports/a", "storage.objects.delete", s, true},
		{"deletes a mark of another cluster", "demo2/marks/a", "storage.objects.delete", s, false},
		{"changes an object's attributes", "demo/marks/a", "storage.objects.update", s, false},
		{"overwrites a mark under a condition that nobody can evaluate", "demo/marks/a", "storage.objects.delete", broken,
			false},
	} {
		got := c.in.GrantsObject(instance.MastersAccount(), instance.BucketName, c.object, c.permission)
		if got != c.want {
			t.Errorf("a master %s: %v, want %v", c.name, got, c.want)
		}
		if c.in.GrantsObject("other@example.iam.gserviceaccount.com", instance.BucketName, c.object, c.permission) {
			t.Errorf("another account %s", c.name)
		}
	}
}
