package bucket

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/setup"
)

// rights is the subject of what the masters' account may do.
const rights = "rights"

// impersonate is how somebody with other rights than the masters' proves these.
const impersonate = "quorate record check --impersonate ACCOUNT"

// checkBucket judges the bucket by the one list of checks.
func checkBucket(f setup.Facts) []record.Finding {
	if f.Bucket.Fault != nil {
		return []record.Finding{{Level: record.Warn, Subject: "deletion",
			What: "cannot tell whether the bucket keeps versions or deletes objects by rule: that needs " +
				"storage.buckets.get: " + f.Bucket.Fault.Text}}
	}
	return setup.JudgeBucket(f.Bucket.Answer, f.BucketName, f.Prefix, "")
}

// checkDeletion tries to delete the probe: a master must be refused. Where it is not, the probe is gone, which harms
// nobody.
func (s *Store) checkDeletion(ctx context.Context, bucket, key, master string) record.Finding {
	err := s.driver.deleteProbe(ctx, key)
	const why = "A claim, an outcome or the bundle that is deleted can be written again: everything rests on that " +
		"they cannot be. docs/iam.md has the roles and conditions that leave out deletion."
	switch {
	case err == nil && master != "":
		return record.Finding{Level: record.Fail, Subject: rights,
			What: fmt.Sprintf("%s could delete %s", master, s.driver.where(key)), Why: why,
			Mend: []string{"gcloud storage buckets get-iam-policy gs://" + bucket}}
	case err == nil:
		return record.Finding{Level: record.Warn, Subject: rights,
			What: "not proven here: that masters may not delete what decides. Who runs this may", Why: why,
			Mend: []string{impersonate}}
	case isKept(err):
		return record.Finding{Level: record.Warn, Subject: rights,
			What: "not proven here: that masters may not delete what decides. The bucket's own rules refuse it: " +
				err.Error()}
	case status(err) != http.StatusForbidden:
		return record.Finding{Level: record.Warn, Subject: rights,
			What: "not proven here: that masters may not delete what decides: " + err.Error()}
	case master == "":
		return record.Finding{Level: record.Warn, Subject: rights,
			What: "not proven here: that masters may not delete what decides. Who runs this may not",
			Mend: []string{impersonate}}
	}
	return record.Finding{Level: record.OK, Subject: rights, What: master + " is refused a deletion under " +
		record.ProbesFolder}
}

// checkOverwriting writes an object under marks/ twice: a master does that each 30 s. The second time it exists in any
// case.
func (s *Store) checkOverwriting(ctx context.Context, bucket, master string) record.Finding {
	var err error
	for range 2 {
		content, _ := json.Marshal(probe{Time: time.Now().UTC()}) // a time always encodes
		if err = s.driver.overwrite(ctx, record.MarkProbeKey, content); err != nil {
			break
		}
	}
	const why = "Without marks a disk that was set back, and a VM that still runs, are not noticed. To overwrite an " +
		"object takes storage.objects.create and storage.objects.delete."
	switch {
	case err == nil && master != "":
		return record.Finding{Level: record.OK, Subject: rights, What: master + " can overwrite objects under marks/"}
	case err == nil:
		return record.Finding{Level: record.Warn, Subject: rights,
			What: "not proven here: that masters may overwrite their marks. Who runs this may", Mend: []string{
				impersonate}}
	case isKept(err):
		return record.Finding{Level: record.Fail, Subject: rights,
			What: "an object under marks/ cannot be overwritten: the bucket's own rules keep it: " + err.Error(),
			Why:  why,
			Mend: []string{"gcloud storage buckets update gs://" + bucket +
				" --clear-retention-period --no-default-event-based-hold"}}
	case master != "" && status(err) == http.StatusForbidden:
		return record.Finding{Level: record.Fail, Subject: rights,
			What: fmt.Sprintf("%s cannot overwrite objects under marks/: %v", master, err), Why: why,
			Mend: []string{"gcloud storage buckets get-iam-policy gs://" + bucket}}
	}
	return record.Finding{Level: record.Warn, Subject: rights,
		What: "not proven here: that masters may overwrite their marks: " + err.Error(), Mend: []string{impersonate}}
}
