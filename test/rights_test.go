package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// In every case here a VM may do what docs/iam.md grants the masters' account, and no more: IAM is in force. This one
// has a master prove it, and sees what decides refused to a thief of its rights.
func TestAMasterHasItsRightsAndNoMore(t *testing.T) {
	t.Parallel()
	c := begin(t, plan{vms: []string{"master-a"}})
	c.awaitWhole(t)
	out := c.in(t, "master-a", "quorate record check")
	for _, want := range []string{instance.MastersAccount() + " is refused a deletion under checks/",
		instance.MastersAccount() + " can overwrite objects under marks/"} {
		if !strings.Contains(out, want) {
			t.Errorf("record check on a master does not say %q:\n%s", want, out)
		}
	}
	inception := fmt.Sprintf("http://10.251.%d.1:8080/storage/v1/b/%s/o/test%%2Finception.json", c.subnet,
		instance.BucketName)
	for want, call := range map[string]string{"storage.objects.delete": "-X DELETE",
		"storage.objects.update": "-X PATCH -d {}"} {
		if got := c.in(t, "master-a", "curl -s "+call+" "+inception); !strings.Contains(got, want) {
			t.Errorf("curl %s: %s; want a refusal that names %s", call, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(c.record(), "inception.json")); err != nil {
		t.Error(err)
	}
}
