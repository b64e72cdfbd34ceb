package setup

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/record"
)

// key judges the key that seals the bundle.
func (l *list) key(f Facts) {
	if f.KeyName == "" {
		l.add(record.Warn, subjectKey, "the seal key stands in the document",
			"Who reads the document and the bucket has all keys of the cluster. That is for tests.")
		return
	}
	if !answered(l, subjectKey, "cloudkms.cryptoKeys.get", f.Key) {
		return
	}
	name := keyFlags(f.KeyName)
	k := f.Key.Answer
	switch {
	case k.Purpose != "ENCRYPT_DECRYPT":
		l.add(record.Fail, subjectKey, fmt.Sprintf("its purpose is %s; ENCRYPT_DECRYPT is needed", k.Purpose),
			"It can neither seal nor open the bundle. A purpose cannot be changed: make another key, and name it in "+
				"seal.key.",
			command("gcloud kms keys create", name.key+"-seal", name.ring, "--purpose=encryption"))
	case k.Primary != "ENABLED":
		state := k.Primary
		if state == "" {
			state = "absent"
		}
		l.add(record.Fail, subjectKey, fmt.Sprintf("its primary version is %s", state),
			"No master can seal or open the bundle with it: neither the first boot nor one with an empty disk comes "+
				"to an end.",
			name.restore(k)...)
	default:
		l.ok(subjectKey, "%s can encrypt, its primary version is enabled", f.KeyName)
	}
}

// keyName is a key's name as gcloud takes it.
type keyName struct{ key, ring string }

// keyFlags takes projects/P/locations/L/keyRings/R/cryptoKeys/K apart.
func keyFlags(name string) keyName {
	parts := strings.Split(name, "/")
	if len(parts) != 8 {
		return keyName{key: name}
	}
	return keyName{key: parts[7], ring: fmt.Sprintf("--keyring=%s --location=%s --project=%s", parts[5], parts[3],
		parts[1])}
}

// restore are the commands that make the primary version usable again. One whose destruction is scheduled can be
// brought back until then; one that is destroyed cannot.
func (n keyName) restore(k Key) []string {
	version := func(verb string) string {
		return command("gcloud kms keys versions", verb, k.PrimaryName, "--key="+n.key, n.ring)
	}
	switch k.Primary {
	case "DISABLED":
		return []string{version("enable")}
	case "DESTROY_SCHEDULED":
		return []string{version("restore"), version("enable")}
	}
	return []string{command("gcloud kms keys versions create", "--key="+n.key, n.ring, "--primary")}
}
