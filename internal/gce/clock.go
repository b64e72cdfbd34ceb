package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// clockPath is a value that every VM has: it is asked for because the answer has a date.
const clockPath = "instance/id"

// Time is the metadata server's: it runs on the VM's host, so no clock of a VM has a part in it. It is that of the
// answer, a whole second, and up to a try's length old.
func (m *Metadata) Time(ctx context.Context) (at time.Time, err error) {
	err = retry(ctx, m.wait, m.name(), "the time", func(ctx context.Context) (err error) {
		at, err = m.answeredAt(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, metadataError{err}
	}
	return at, nil
}

func (m *Metadata) answeredAt(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.host+"/computeMetadata/v1/"+clockPath, nil)
	if err != nil {
		return time.Time{}, err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	res, err := m.http.Do(req)
	if err != nil {
		return time.Time{}, judge(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("found status %d where there is always something", res.StatusCode)
	}
	at, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return time.Time{}, finalError{errors.New("found an answer without a date")}
	}
	return at, nil
}
