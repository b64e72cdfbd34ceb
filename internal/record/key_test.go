package record

import (
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

func TestParseKeyIsTheInverseOfTheKeys(t *testing.T) {
	p := replica.Place{Zone: "us-central1-a", Name: "m-1"}
	for key, want := range map[string]object{
		inceptionKey:                         {kind: inceptionObject},
		claimKey(7):                          {kind: claimObject, epoch: 7},
		outcomeKey(7):                        {kind: outcomeObject, epoch: 7},
		closedKey(7):                         {kind: closedObject, epoch: 7},
		stoppedKey(7, p, 12):                 {kind: stoppedObject, epoch: 7, place: p, number: 12},
		incarnationKey(p, 12):                {kind: incarnationObject, place: p, number: 12},
		startedKey(p, 12):                    {kind: startedObject, place: p, number: 12},
		markKey(0x8e9e05c52164694d):          {kind: markObject, member: 0x8e9e05c52164694d},
		sealedKey(3):                         {kind: sealedObject, number: 3},
		orderKey(maxNumber):                  {kind: orderObject, number: maxNumber},
		doneKey(4):                           {kind: doneObject, number: 4},
		acceptedKey(4):                       {kind: acceptedObject, number: 4},
		verdictKey(4):                        {kind: verdictObject, number: 4},
		vmStopKey(4, "18395952728694776415"): {kind: vmStopObject, number: 4, name: "18395952728694776415"},
		diskKey(p, 12):                       {kind: diskObject, place: p, number: 12},
		probeKey("x"):                        {kind: probeObject},
		"snapshots/2/1234-20260102T030405Z.db.zst": {kind: snapshotObject, epoch: 2, name: "2/1234-20260102T030405Z"},
		"snapshots/2/1234-20260102T030405Z.json": {kind: snapshotInfoObject, epoch: 2,
			name: "2/1234-20260102T030405Z"},
		"epochs":                     {kind: misplacedObject},
		"epochs/3":                   {kind: misplacedObject},
		"epochs/3/stopped":           {kind: misplacedObject},
		"replicas":                   {kind: misplacedObject},
		"replicas/us-central1-a.m-1": {kind: misplacedObject},
		"orders":                     {kind: misplacedObject},
		"snapshots/4":                {kind: misplacedObject},
	} {
		if got := parseKey(key); got != want {
			t.Errorf("parseKey(%q) = %+v, want %+v", key, got, want)
		}
	}
}

func TestParseKeyRefusesWhatItWouldNotSpell(t *testing.T) {
	for _, key := range []string{"", "/", "inception.json/", "x", "epochs/01/claim.json", "epochs/0/claim.json",
		"epochs/+1/claim.json",
		"epochs/-1/claim.json", "epochs/1 /claim.json", "epochs/18446744073709551616/claim.json",
		"epochs/1/claim.json.tmp",
		"epochs/1/Claim.json", "epochs/1/x/claim.json", "epochs//claim.json", "epochs/1/stopped/z-a.m.json",
		"epochs/1/stopped/z-a.m.0.json",
		"epochs/1/stopped/m.1.json", "epochs/1/stopped/z-a.m.1", "epochs/1/stopped/x/z-a.m.1.json", "replicas/m/1.json",
		"replicas/z-a.m.x/1.json",
		"replicas/z-a.m/01.json", "replicas/z-a.m/1.started", "replicas/z-a.m/1.json/x", "marks/0.json",
		"marks/0a.json", "marks/A.json",
		"marks/1.json.json", "marks/12345678901234567.json", "bundle/1", "bundle/0.sealed", "orders/1", "orders/1.done",
		"orders/x.json", "orders/1.vm-stopped.x.json", "orders/1.vm-stopped..json",
		"orders/0.vm-stopped.7.json", "orders/1.vm-stopped.7", "replicas/z-a.m/0.disk.json",
		"snapshots/1/x-y.json", "snapshots/1/1-.json", "snapshots/1/1.json", "snapshots/1/1-t.db",
		"snapshots/1/2/1-t.json", "other/1.json",
		"replicas/us-central1-a.m\t1/1.json", "replicas/z-a.m 1/1.json", "replicas/z-a.M1/1.json",
		"replicas/z-a.m_1/1.json", "replicas/z-a.1m/1.json",
		"replicas/z-a.m-/1.json", "replicas/-a.m/1.json", "replicas/z\n-a.m/1.started.json",
		"replicas/z-a.m\u00e4/1.json", "replicas/.m/1.json",
		"epochs/", "epochs/3/", "epochs/3/stopped/", "replicas/", "replicas/us-central1-a.m-1/", "marks/", "orders/",
		"snapshots/", "snapshots/4/", "epochs/18446744073709551615/claim.json",
		orderKey(maxNumber + 1), doneKey(18446744073709551615), vmStopKey(maxNumber+1, "7"),
		"epochs/1/stopped/z-a.m\t1.2.json", "epochs/1/stopped/z-a.m\x1b[2J.2.json",
	} {
		if got := parseKey(key); got.kind != unknown {
			t.Errorf("parseKey(%q) = %+v, want unknown", key, got)
		}
	}
}
