package gce

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func TestWatchInterfacesSeesWhatIsForwarded(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	answer := func(text string) { f.set(interfacesPath, text) }
	answer(`[{"mac":"42:01:0a:f0:00:02","ip":"10.240.0.2","forwardedIps":[]}]`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	go func() {
		_ = f.dial(time.Second).WatchInterfaces(ctx, func(nics []replica.Interface) { said <- fmt.Sprint(nics) },
			func(err error) { said <- err.Error() })
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-said:
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("the watch does not say %s", want)
		}
	}
	expect("[{42:01:0a:f0:00:02 [] false []}]")
	answer(`[{"mac":"42:01:0a:f0:00:02","ip":"10.240.0.2","forwardedIps":["203.0.113.7"]}]`)
	expect("[{42:01:0a:f0:00:02 [203.0.113.7/32] false []}]")
	// What else changes at an interface is no news, and what cannot be read is told once.
	answer(`[{"mac":"42:01:0a:f0:00:02","ip":"10.240.0.2","forwardedIps":["203.0.113.7"],"mtu":1500}]`)
	time.Sleep(200 * time.Millisecond) // it is read meanwhile
	answer(`[{"mac":"42:01:0a:f0:00:02","forwardedIps":["203.0.113"]}]`)
	expect(`instance/network-interfaces/0/forwarded-ips: found "203.0.113"; allowed: an address or a range`)
	answer(`[{"mac":"42:01:0a:f0:00:02","forwardedIps":["203.0.113.64/28"],"forwardedIpv6s":["2600:1900::7"],` +
		`"ipAliases":["10.8.0.0/24"],"targetInstanceIps":["203.0.113.9"]},` +
		`{"mac":"42:01:0a:f1:00:02","forwardedIps":[]}]`)
	expect("[{42:01:0a:f0:00:02 [203.0.113.64/28 2600:1900::7/128] true [10.8.0.0/24 203.0.113.9/32]} " +
		"{42:01:0a:f1:00:02 [] false []}]")
	answer(`[{"mac":"42:01:0a:f0:00:02","forwardedIps":[]}]`)
	expect("[{42:01:0a:f0:00:02 [] false []}]")
	// What was said before a refusal is said again after it: whoever heard of the refusal waits for that.
	answer(`null`)
	expect(`instance/network-interfaces/: found "null"; allowed: at least one interface`)
	answer(`[{"mac":"42:01:0a:f0:00:02","forwardedIps":[]}]`)
	expect("[{42:01:0a:f0:00:02 [] false []}]")
}

func TestForwardedAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ field, value string }{
		{"forwardedIps", "203.0.113"}, {"forwardedIps", "127.0.0.1"}, {"forwardedIps", "169.254.169.254"},
		{"forwardedIps", "0.0.0.0/0"}, {"forwardedIps", "224.0.0.1"}, {"forwardedIps", ""},
		{"forwardedIpv6s", "fe80::1"}, {"forwardedIpv6s", "fe80::1%eth0"}, {"ipAliases", "10.0.0.0/33"},
		{"forwardedIps", "203.0.0.0/7"}, {"forwardedIpv6s", "2600:1900::/47"}, {"forwardedIpv6s", "::ffff:127.0.0.1"},
		{"forwardedIpv6s", "::ffff:203.0.113.0/90"},
	} {
		_, err := parseForwarding(fmt.Sprintf(`[{"mac":"42:01:0a:f0:00:02","forwardedIps":[],%q:[%q]}]`, tc.field,
			tc.value))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", tc.value)) ||
			!strings.Contains(err.Error(), "network-interfaces/0/") {
			t.Errorf("%s %q: got %v, want an error that names key and value", tc.field, tc.value, err)
		}
	}
	if _, err := parseForwarding("{}"); err == nil {
		t.Error("something that is no list was read")
	}
}

// Taken for an answer, each of these would say that nothing is forwarded any more.
func TestAnAnswerThatIsNotWholeIsNoAnswer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"null": "at least one interface", "[]": "at least one interface", "[null]": "0/mac",
		`[{"forwardedIps":[]}]`:                                                 "0/mac",
		`[{"mac":"42:01:0a:f0:00:02"}]`:                                         "0/forwarded-ips",
		`[{"mac":"42:01:0a:f0:00:02","forwardedIps":null}]`:                     "0/forwarded-ips",
		`[{"mac":"42:01:0a:f0:00:02","forwardedIps":[]},{"mac":"42:01:0a:f1"}]`: "1/forwarded-ips",
	} {
		nics, err := parseForwarding(body)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want an error about %s", body, nics, err, want)
		}
	}
}

func TestAnIPv4AddressInTheFormOfIPv6IsOneOfIPv4(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"::ffff:203.0.113.7": "203.0.113.7/32", "203.0.0.0/8": "203.0.0.0/8", "2600:1900::/48": "2600:1900::/48",
	} {
		if p, ok := parseForwarded(text); !ok || p.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, p, ok, want)
		}
	}
}
