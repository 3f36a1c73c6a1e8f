package harness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/nemesis"
)

func TestEveryFaultHasItsTurn(t *testing.T) {
	faults := nemesis.All()
	for _, limit := range []time.Duration{20 * time.Second, 30 * time.Second, time.Minute, 10 * time.Minute} {
		for seed := range uint64(50) {
			o := harness.DefaultOptions()
			o.Seed, o.TimeLimit = seed, limit
			schedule := harness.DrawSchedule(o, faults)
			require.NoError(t, harness.ValidateSchedule(schedule, faults))
			require.Len(t, harness.Planned(o, faults, schedule), len(faults))
			for i, e := range schedule {
				require.Equal(t, i, e.ID)
				require.Less(t, e.Trigger.At, limit-o.SessionTimeout/2, "%s of %v starts at the very end", e.Fault, limit)
				if i > 0 {
					require.GreaterOrEqual(t, e.Trigger.At, schedule[i-1].Trigger.At)
				}
			}
			require.Equal(t, schedule, harness.DrawSchedule(o, faults))
		}
	}
}

// A fault's own draws do not depend on which other faults take part, but for
// the place of its slots.
func TestFaultsDrawFromStreamsOfTheirOwn(t *testing.T) {
	o := harness.DefaultOptions()
	params := func(faults []harness.Fault) (out []string) {
		for _, e := range harness.DrawSchedule(o, faults) {
			if e.Fault == "zk-session-loss" {
				out = append(out, string(e.Params)+e.Target.Who)
			}
		}
		return out
	}
	one, err := nemesis.Parse("zk-session-loss")
	require.NoError(t, err)
	require.Subset(t, params(one), params(nemesis.All()))
}

func TestSchedulesSurviveTheFile(t *testing.T) {
	faults := nemesis.All()
	after := 0
	schedule := []harness.Entry{
		{
			ID: 0, Fault: "restart", Trigger: harness.Trigger{At: 1500 * time.Millisecond, Ops: 100},
			Target: harness.Target{Who: harness.WhoBucketLeader, Table: "registers", Bucket: 3},
			Params: json.RawMessage(`{"mode":"kill","down":"1s"}`), Lease: 10 * time.Second,
		},
		{
			ID: 1, Fault: "old-leader", Lease: time.Minute, Target: harness.Target{Who: harness.WhoCoordinatorLeader},
			Trigger: harness.Trigger{
				Event: "role", Where: map[string]string{"state": "admitted", "server": "2"}, Wait: time.Millisecond, AfterFault: &after,
			},
		},
	}
	dir := t.TempDir()
	require.NoError(t, harness.WriteSchedule(dir, schedule))
	back, err := harness.LoadSchedule(dir, faults)
	require.NoError(t, err)
	require.Len(t, back, 2)
	require.JSONEq(t, string(schedule[0].Params), string(back[0].Params))
	back[0].Params, schedule[0].Params = nil, nil
	require.Equal(t, schedule, back)
	raw, err := os.ReadFile(filepath.Join(dir, harness.ScheduleFile))
	require.NoError(t, err)
	require.Contains(t, string(raw), `"at": "1.5s"`)
}

func TestBadSchedulesAreRefusedWithTheReason(t *testing.T) {
	const head = `{"schema":1,"entries":[`
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":               {`{`, "unexpected EOF"},
		"other schema":          {`{"schema":9,"entries":[]}`, "schema 9"},
		"trailing":              {`{"schema":1,"entries":[]} {}`, "something follows"},
		"unknown field":         {head + `{"id":1,"fault":"restart","when":1}]}`, `unknown field "when"`},
		"unknown fault":         {head + `{"id":1,"fault":"meteor","target":{"who":"tablet"},"lease":"1s"}]}`, `unknown fault "meteor"`},
		"no lease":              {head + `{"id":1,"fault":"restart","target":{"who":"tablet"}}]}`, "lease 0s"},
		"bad duration":          {head + `{"id":1,"fault":"restart","target":{"who":"tablet"},"lease":"soon"}]}`, `duration "soon"`},
		"unknown target":        {head + `{"id":1,"fault":"restart","target":{"who":"nobody"},"lease":"1s"}]}`, `unknown who "nobody"`},
		"no nodes":              {head + `{"id":1,"fault":"restart","target":{"who":"node"},"lease":"1s"}]}`, "needs nodes"},
		"twice":                 {head + `{"id":1,"fault":"restart","target":{"who":"any"},"lease":"1s"},{"id":1,"fault":"restart","target":{"who":"any"},"lease":"1s"}]}`, "stands twice"},
		"after nobody":          {head + `{"id":1,"fault":"restart","trigger":{"after_fault":7},"target":{"who":"any"},"lease":"1s"}]}`, "after_fault 7"},
		"after itself":          {head + `{"id":1,"fault":"restart","trigger":{"after_fault":1},"target":{"who":"any"},"lease":"1s"}]}`, "back to itself"},
		"a circle":              {head + `{"id":1,"fault":"restart","trigger":{"after_fault":2},"target":{"who":"any"},"lease":"1s"},{"id":2,"fault":"restart","trigger":{"after_fault":1},"target":{"who":"any"},"lease":"1s"}]}`, "back to itself"},
		"a gate without a name": {head + `{"id":1,"fault":"restart","trigger":{"gate":{"path":"x"}},"target":{"who":"any"},"lease":"1s"}]}`, "a gate needs an api"},
		"where alone":           {head + `{"id":1,"fault":"restart","trigger":{"where":{"a":"b"}},"target":{"who":"any"},"lease":"1s"}]}`, "without an event"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mine.json")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
			_, err := harness.LoadSchedule(file, nemesis.All())
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "load schedule")
		})
	}
}

func TestUnknownFaultsAreNamed(t *testing.T) {
	_, err := nemesis.Parse("restart,meteor")
	require.ErrorContains(t, err, `unknown fault "meteor"`)
	require.ErrorContains(t, err, "slow-recovery")
	none, err := nemesis.Parse("none")
	require.NoError(t, err)
	require.Empty(t, none)
	twice, err := nemesis.Parse("restart, restart")
	require.NoError(t, err)
	require.Len(t, twice, 1)
}

func TestBadOptionsAreNamed(t *testing.T) {
	o := harness.DefaultOptions()
	require.NoError(t, o.Validate())
	o.Replication = 9
	require.ErrorContains(t, o.Validate(), "replication: want 1 to the number of tablets")
}

func TestPlansOfAnotherSchemaAreRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, harness.WritePlan(dir, harness.Plan{Options: harness.DefaultOptions(), Name: "t"}))
	p, err := harness.LoadPlan(dir)
	require.NoError(t, err)
	require.Equal(t, harness.PlanSchema, p.Schema)
	file := filepath.Join(dir, harness.PlanFile)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append([]byte(`{"schema":99,`), raw[len("{\n  \"schema\": 1,"):]...), 0o644))
	_, err = harness.LoadPlan(file)
	require.ErrorContains(t, err, "schema 99")
}
