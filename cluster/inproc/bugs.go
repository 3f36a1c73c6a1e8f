package inproc

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// Bug is a planted mistake: it replaces exactly one field of the policy. Its
// words say what it breaks, what must happen for it to show, and which checker
// finds it in which scenario.
type Bug struct {
	Name     string
	Source   string // an issue, a paper, or the rule of the protocol
	Breaks   string // the guarantee that no longer holds
	Trigger  string // what must happen for it to show
	CaughtBy string // the checker that finds it
	Scenario string // the faults, and options, under which it is found
	Plant    func(*protocol.Policy)
}

// Bugs lists every planted bug, in the order of the reference.
func Bugs() []Bug {
	return []Bug{
		advertiseBeforeAdmit(),
		clientNoBackoff(),
		clientOldMetadata(),
		clientNewSequence(),
		epochAlwaysZero(),
		unfencedRPC(),
		unguardedZKWrites(),
		standbyServes(),
		clearedOnRPCFailure(),
		staleAckClearsNewer(),
		ackLostPendingForever(),
		repeatAcksEarly(),
		failoverWithholdsServingLeaders(),
		lateNoneBeatsLeader(),
		bounceUnseen(),
		servesBeforeRegistration(),
		partialRestoreServes(),
		restartedLeaderKept(),
		s1EpochInMemory(),
		s1RestartedLeaderLeadsOn(),
		s2UnsyncedCounts(),
		s3RevertRefusedISR(),
		s4FollowerHWIsItsEnd(),
		s4MinISRIgnored(),
		s4EndsOfFormerEpochs(),
		s5JoinAtHW(),
		s6ReadBeforeEpochStart(),
		s7UnconfirmedReads(),
		s7ArrivalConfirms(),
		s7CommittedISRConfirms(),
		s7BareCounter(),
		s8TruncateToHW(),
		s8UnmatchedReply(),
		s9NoCompareAndSet(),
		s10DuplicateAtOnce(),
		s10DedupeSurvivesTruncation(),
		notLeaderAfterAppend(),
		fetcherNoBackoff(),
	}
}

// Preset is a set of bugs with a name: a system as it is, or was.
type Preset struct {
	Name string
	Doc  string
	Bugs []string
}

// Presets lists the sets of bugs. Those named after Apache Fluss are our reading
// of its sources, decision by decision.
func Presets() []Preset {
	shared := []string{
		"bounce-unseen", "serves-before-registration", "client-no-backoff", "client-old-metadata", "late-none-beats-leader", "s3-revert-refused-isr",
		"s4-ends-of-former-epochs", "s4-follower-hw-is-its-end", "s6-read-before-epoch-start", "s7-unconfirmed-reads",
		"s8-truncate-to-hw", "s9-no-compare-and-set", "ack-lost-pending-forever", "not-leader-after-append",
	}
	with := func(more ...string) []string { return append(more, shared...) }
	return []Preset{
		{Name: "sound", Doc: "The best protocol that we know; no bug."},
		{
			Name: "fluss-0.9.1", Doc: "The release: one coordinator, no epoch, no fencing.",
			Bugs: with("advertise-before-admit", "epoch-always-zero", "unfenced-rpc", "unguarded-zk-writes"),
		},
		{
			Name: "fluss-main", Doc: "The main branch: a real epoch and fencing, a pending set that metadata ignores.",
			Bugs: with("advertise-before-admit", "cleared-on-rpc-failure", "stale-ack-clears-newer", "repeat-acks-early"),
		},
		{
			Name: "fluss-pr4150", Doc: "The main branch with the proposed fix: pending leaders are withheld from metadata.",
			Bugs: with("stale-ack-clears-newer", "repeat-acks-early"),
		},
	}
}

// Plan is the sound policy with the named bugs planted. It refuses an unknown
// name, listing those that are near, and two bugs in one field.
func Plan(names []string) (protocol.Policy, error) { return plan(Bugs(), names) }

func plan(bugs []Bug, names []string) (protocol.Policy, error) {
	policy := protocol.Sound()
	planted := map[string]string{} // field → bug
	for _, name := range names {
		at := slices.IndexFunc(bugs, func(b Bug) bool { return b.Name == name })
		if at < 0 {
			return protocol.Policy{}, unknownName("bug", name, bugNames(bugs))
		}
		bug := bugs[at]
		for _, field := range bug.changes() {
			if other, taken := planted[field]; taken && other != name {
				return protocol.Policy{}, fmt.Errorf("plant bugs %s and %s: both replace %s", other, name, field)
			}
			planted[field] = name
		}
		bug.Plant(&policy)
	}
	return policy, nil
}

// FindPreset returns the preset of a name, or an error that lists those near.
func FindPreset(name string) (Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, unknownName("preset", name, names)
}

func bugNames(bugs []Bug) []string {
	names := make([]string, 0, len(bugs))
	for _, b := range bugs {
		names = append(names, b.Name)
	}
	return names
}

// changes names the fields of the sound policy that the bug replaces.
func (b Bug) changes() []string {
	sound, planted := protocol.Sound(), protocol.Sound()
	b.Plant(&planted)
	return differences("", reflect.ValueOf(sound), reflect.ValueOf(planted))
}

func differences(path string, a, b reflect.Value) []string {
	if a.Kind() != reflect.Struct {
		if a.Equal(b) {
			return nil
		}
		return []string{path}
	}
	var all []string
	for i := range a.NumField() {
		name := strings.TrimPrefix(path+"."+a.Type().Field(i).Name, ".")
		all = append(all, differences(name, a.Field(i), b.Field(i))...)
	}
	return all
}

// unknownName says which names were probably meant.
func unknownName(what, name string, known []string) error {
	const most = 3
	near := append([]string(nil), known...)
	sort.SliceStable(near, func(i, j int) bool { return distance(name, near[i]) < distance(name, near[j]) })
	return fmt.Errorf("unknown %s %q; near: %s", what, name, strings.Join(near[:min(most, len(near))], ", "))
}

// distance is how many letters must be added, dropped or replaced; a name that
// contains the other is at most one away.
func distance(a, b string) int {
	if a != "" && strings.Contains(b, a) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
