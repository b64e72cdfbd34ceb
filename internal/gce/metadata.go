package gce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cloud.google.com/go/compute/metadata"

	"github.com/quorate/quorate/internal/pattern"
)

// ErrMetadata is in every error of a metadata server that is away, does not answer in time, says what no metadata
// server says, or is something else.
var ErrMetadata = errors.New("the metadata server cannot be used")

// metadataError marks an error of the server with ErrMetadata, which does not show in its text.
type metadataError struct{ error }

// Unwrap returns the sentinel and the error's own causes.
func (e metadataError) Unwrap() []error { return []error{ErrMetadata, e.error} }

// MetadataConfig says where the metadata server is. The zero value is right on every VM.
type MetadataConfig struct {
	// Host replaces 169.254.169.254, as HOST or HOST:PORT.
	Host string
	// Wait is how long one question is retried; 30 s where it is not given.
	Wait time.Duration
	// BootIDFile replaces /proc/sys/kernel/random/boot_id.
	BootIDFile string
	// Log hears when a watch loses and finds the server; silent where it is not given.
	Log *slog.Logger
}

// Metadata asks the metadata server. Its methods may be called concurrently.
type Metadata struct {
	host       string
	wait       time.Duration
	bootIDFile string
	log        *slog.Logger
	http       *http.Client
	client     *metadata.Client
	account    *serviceAccount
}

// NewMetadata makes the client; it asks nothing yet.
func NewMetadata(cfg MetadataConfig) *Metadata {
	m := &Metadata{host: cfg.Host, wait: cfg.Wait, bootIDFile: cfg.BootIDFile, log: cfg.Log}
	if m.host == "" {
		m.host = metadataAddress
	}
	if m.wait <= 0 {
		m.wait = defaultWait
	}
	if m.bootIDFile == "" {
		m.bootIDFile = "/proc/sys/kernel/random/boot_id"
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.http = direct(pinned{host: m.host, next: newPlainTransport()})
	m.client = metadata.NewWithOptions(&metadata.Options{Client: m.http})
	m.account = newServiceAccount(m, newCloudTransport())
	return m
}

// attributeKey is what GCE allows as the key of an attribute.
var attributeKey = pattern.Of(`^[-_A-Za-z0-9]{1,128}$`)

// Attribute is the value of an instance attribute. found is false only where the server says that there is none; an
// attribute set to nothing is found.
func (m *Metadata) Attribute(ctx context.Context, key string) (value string, found bool, err error) {
	if !attributeKey().MatchString(key) {
		return "", false, fmt.Errorf("read instance attribute %q: allowed: 1 to 128 of a-z, A-Z, 0-9, - and _", key)
	}
	value, err = m.get(ctx, "instance/attributes/"+key)
	if errors.As(err, new(metadata.NotDefinedError)) {
		return "", false, nil
	}
	return value, err == nil, err
}

// NoMaintenance is what MaintenanceEvent says while nothing is planned.
const NoMaintenance = "NONE"

// MaintenanceEvent is what the host plans for this VM: NONE, MIGRATE_ON_HOST_MAINTENANCE or
// TERMINATE_ON_HOST_MAINTENANCE.
func (m *Metadata) MaintenanceEvent(ctx context.Context) (string, error) {
	event, err := m.get(ctx, maintenancePath)
	return strings.TrimSpace(event), err
}

// Spot says whether Compute Engine may stop this VM at any time, and then cuts its power within 30 s.
func (m *Metadata) Spot(ctx context.Context) (bool, error) {
	value, err := m.get(ctx, "instance/scheduling/preemptible")
	if err != nil {
		return false, err
	}
	switch value = strings.TrimSpace(value); value {
	case "TRUE", "FALSE":
		return value == "TRUE", nil
	}
	return false, metadataError{fmt.Errorf("%s says that instance/scheduling/preemptible is %q: TRUE and FALSE are known",
		m.name(), shorten(value))}
}

// Account is the address of the service account that the VM acts as.
func (m *Metadata) Account(ctx context.Context) (string, error) {
	email, err := m.get(ctx, "instance/service-accounts/default/email")
	return strings.TrimSpace(email), err
}

// get asks for one value. The getters of the official client that are named after values are not used: they keep what
// they read for the life of the process, and cut a malformed zone to something that looks like one.
func (m *Metadata) get(ctx context.Context, path string) (string, error) {
	var value string
	err := retry(ctx, m.wait, m.name(), path, func(ctx context.Context) error {
		var err error
		value, err = m.client.GetWithContext(ctx, path)
		return judge(err)
	})
	if err != nil {
		return "", metadataError{err}
	}
	return value, nil
}

// judge marks "there is none" as final, and drops the URL that net/http adds, which names the wrong host.
func judge(err error) error {
	var asked *url.Error
	switch {
	case errors.As(err, new(metadata.NotDefinedError)):
		return finalError{err}
	case errors.As(err, &asked):
		return asked.Err
	}
	return err
}

func (m *Metadata) name() string { return "the metadata server at " + m.host }
