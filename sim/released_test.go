package sim_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"kvfleet/sim"
	"kvfleet/traces/workload"
)

// The released rows come from an open loop of 6 requests a second over a pool of
// 307 sessions: 30 conversations whose turns are 5 s apart, so a round of
// arrivals is 5 s and a visit 20 s.
const (
	releasedSlots = 30
	releasedRound = 5000.0 // ms
	releasedEpoch = 1073741830
)

type releasedRow struct {
	line                  int
	at                    float64 // due, ms
	session, turn         int
	prompt, cached, bytes int
}

func (r *releasedRow) round() int   { return int(r.at / releasedRound) }
func (r *releasedRow) system() bool { return slices.Contains([]int{2509, 4620, 6731, 8330}, r.bytes) }

func released(t *testing.T) ([]releasedRow, workload.MultiTurn) {
	t.Helper()
	file, err := os.Open("../../shared/reference/rtx3090/rows_session_affinity_open6.csv")
	if os.IsNotExist(err) {
		t.Skip("the released rows are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	var rows []releasedRow
	for i, record := range records[1:] {
		r := releasedRow{line: i + 2}
		integer := func(name string) int {
			v, err := strconv.Atoi(record[column[name]])
			if err != nil {
				t.Fatalf("line %d: %s: %v", r.line, name, err)
			}
			return v
		}
		if r.at, err = strconv.ParseFloat(record[column["scheduled_ms"]], 64); err != nil {
			t.Fatalf("line %d: %v", r.line, err)
		}
		if _, err := fmt.Sscanf(record[column["session"]], fmt.Sprintf("sess-%d-%%d", releasedEpoch), &r.session); err != nil {
			t.Fatalf("line %d: session: %v", r.line, err)
		}
		r.turn, r.prompt, r.cached, r.bytes = integer("turn"), integer("prompt_tokens"), integer("cached_tokens"), integer("prompt_bytes")
		rows = append(rows, r)
	}
	if len(rows) != 219 {
		t.Fatalf("got %d released rows, want 219", len(rows))
	}
	m, err := workload.Published(1, 0, 629_760, 1).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return rows, m
}

// In every round each conversation sends once, and what it sends is the session
// of its visit: the generator's draws are the published ones, without exception.
func TestSessionsAreTheReleasedOnes(t *testing.T) {
	rows, m := released(t)
	draws := m.Draws()
	sent := map[int][]int{} // by round
	for i := range rows {
		r := &rows[i]
		if want := r.round() % 4; r.turn != want {
			t.Errorf("line %d: got turn %d in round %d, want %d", r.line, r.turn, r.round(), want)
		}
		sent[r.round()] = append(sent[r.round()], r.session)
	}
	complete := 0
	for _, round := range slices.Sorted(maps.Keys(sent)) {
		var want []int
		for slot := range releasedSlots {
			want = append(want, draws.Session(slot, round/4))
		}
		slices.Sort(want)
		got := sent[round]
		slices.Sort(got)
		if len(got) == releasedSlots {
			complete++
			if !slices.Equal(got, want) {
				t.Errorf("round %d: got sessions %v, want %v", round, got, want)
			}
			continue
		}
		// The last round is cut off: what there is of it must be of this visit.
		for _, session := range got {
			i, ok := slices.BinarySearch(want, session)
			if !ok {
				t.Errorf("round %d: session %d is nobody's", round, session)
				continue
			}
			want = slices.Delete(want, i, i+1)
		}
	}
	if complete != 7 {
		t.Errorf("got %d complete rounds, want 7", complete)
	}
}

// OpenRows deals the released rounds: the same turns of the same sessions, each
// conversation once a round, due on the same grid.
func TestOpenRowsAreTheReleasedOnes(t *testing.T) {
	rows, m := released(t)
	plan := workload.OpenPlan{Epoch: releasedEpoch, Rate: 6, Window: 90 * time.Second, Tokenizer: releasedTokenizer(t)}
	type sent struct{ round, turn, session int }
	planned := map[sent]int{}
	var due []float64
	slots := map[[2]int]bool{} // round, slot
	for row, err := range m.OpenRows(plan) {
		if err != nil {
			t.Fatal(err)
		}
		ms := float64(row.ScheduledAt) / 1e6
		round := int(ms / releasedRound)
		key := [2]int{round, int(row.VirtualUser)}
		if slots[key] {
			t.Errorf("round %d: slot %d sends twice", key[0], key[1])
		}
		slots[key] = true
		var epoch, session int
		fmt.Sscanf(row.Session, "sess-%d-%d", &epoch, &session)
		planned[sent{round, int(row.Turn), session}]++
		due = append(due, ms)
	}
	if got, want := len(slots), 18*releasedSlots; got != want {
		t.Errorf("got %d turns in 90 s, want %d", got, want)
	}
	for i := range rows {
		r := &rows[i]
		key := sent{r.round(), r.turn, r.session}
		if planned[key] == 0 {
			t.Errorf("line %d: session %d, turn %d in round %d is not planned", r.line, r.session, r.turn, r.round())
		}
		planned[key]--
		if k := int(math.Round(r.at * 6 / 1000)); math.Abs(due[k]-r.at) > 0.001 {
			t.Errorf("line %d: arrival %d: got due at %v ms, want %v", r.line, k, due[k], r.at)
		}
	}
}

// The released column is the size of a request's JSON body: the text, and what
// frames it.
func TestSystemPromptsAndSizesAreTheReleasedOnes(t *testing.T) {
	rows, m := released(t)
	for i := range rows {
		r := &rows[i]
		if got, want := m.System(r.session), r.system(); got != want {
			t.Errorf("line %d: session %d: got system prompt %v, want %v", r.line, r.session, got, want)
			continue
		}
		text := 0
		for _, message := range m.Messages(releasedEpoch, r.session, r.turn) {
			text += len(message.Content)
		}
		framing := 174 + 63*r.turn
		if r.system() {
			framing += 31
		}
		if got := text + framing; got != r.bytes {
			t.Errorf("line %d: session %d, turn %d: got %d bytes, want %d", r.line, r.session, r.turn, got, r.bytes)
		}
	}
}

// The members of a family send the same first turn: the engine counted the same
// tokens.
func TestFamiliesAreTheReleasedOnes(t *testing.T) {
	rows, m := released(t)
	type family struct {
		system bool
		family int
	}
	tokens, members := map[family]int{}, map[family]map[int]bool{}
	for i := range rows {
		r := &rows[i]
		f := family{r.system(), m.Family(r.session)}
		if r.turn != 0 || f.family < 0 {
			continue
		}
		if members[f] == nil {
			tokens[f], members[f] = r.prompt, map[int]bool{}
		}
		members[f][r.session] = true
		if tokens[f] != r.prompt {
			t.Errorf("line %d: session %d of %+v: got a first turn of %d tokens, want %d as its relatives'", r.line, r.session, f, r.prompt, tokens[f])
		}
		// The system prompt adds the same to every family.
		if other, ok := tokens[family{!f.system, f.family}]; ok {
			if d := max(r.prompt, other) - min(r.prompt, other); d != 320 {
				t.Errorf("line %d: family %d: the system prompt adds %d tokens, want 320", r.line, f.family, d)
			}
		}
	}
	related := 0
	for _, m := range members {
		if len(m) > 1 {
			related += len(m)
		}
	}
	if related != 11 {
		t.Errorf("got %d sessions with relatives in the rows, want 11", related)
	}
}

func releasedTokenizer(t *testing.T) workload.Tokenizer {
	t.Helper()
	fleet, err := sim.LoadFleet("rtx3090x5")
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Tokenizer
}

func TestTokenCountsAreLikeTheReleasedOnes(t *testing.T) {
	rows, m := released(t)
	content := m.Content(releasedEpoch, releasedTokenizer(t), 16)
	type kind struct {
		turn   int
		system bool
	}
	got, want := map[kind][]float64{}, map[kind][]float64{}
	seen := map[[2]int]bool{}
	for i := range rows {
		r := &rows[i]
		if key := [2]int{r.session, r.turn}; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		k := kind{r.turn, r.system()}
		want[k] = append(want[k], float64(r.prompt))
		got[k] = append(got[k], float64(content.Prompt(r.session, r.turn).Tokens))
	}
	if len(want) != 8 {
		t.Fatalf("got %d kinds of prompt, want 8", len(want))
	}
	var ours, theirs, n float64 // pooled variance
	for k := range want {
		gotMean, gotVar := moments(got[k])
		wantMean, wantVar := moments(want[k])
		if math.Abs(gotMean/wantMean-1) > 0.01 {
			t.Errorf("turn %d, system %v: got a mean of %.1f tokens, want %.1f within 1%%", k.turn, k.system, gotMean, wantMean)
		}
		if ratio := math.Sqrt(gotVar / wantVar); ratio < 0.5 || ratio > 2 {
			t.Errorf("turn %d, system %v: got a deviation of %.1f tokens, want about %.1f", k.turn, k.system, math.Sqrt(gotVar), math.Sqrt(wantVar))
		}
		ours += gotVar * float64(len(want[k]))
		theirs += wantVar * float64(len(want[k]))
		n += float64(len(want[k]))
	}
	if ratio := math.Sqrt(ours / theirs); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("got a deviation of %.1f tokens over all kinds, want %.1f within a quarter", math.Sqrt(ours/n), math.Sqrt(theirs/n))
	}
}

// What the engine found cached is what the block numbers share: of an unseen
// prompt the system prompt and the next header, of a session's next turn the last
// prompt, of a prompt sent before all but its last token, in whole blocks.
func TestCachedTokensAreWhatBlocksShare(t *testing.T) {
	rows, m := released(t)
	content := m.Content(releasedEpoch, releasedTokenizer(t), 16)
	shared := func(a, b *workload.Prompt) int {
		n := 0
		for n < len(a.Blocks) && n < len(b.Blocks) && a.Blocks[n] == b.Blocks[n] {
			n++
		}
		return n * 16
	}
	// Two unrelated sessions with the system prompt, and two without.
	alone := map[bool][]int{}
	for id := range m.Sessions {
		if m.Family(id) < 0 {
			alone[m.System(id)] = append(alone[m.System(id)], id)
		}
	}
	cold := map[bool]int{}
	for system, ids := range alone {
		cold[system] = shared(content.Prompt(ids[0], 0), content.Prompt(ids[1], 0))
	}
	if cold[false] != 16 || cold[true] != 336 {
		t.Errorf("got %d tokens shared by all prompts and %d by those with the system prompt, want 16 and 336", cold[false], cold[true])
	}

	prompts := map[[2]int]int{} // tokens by session and turn
	for i := range rows {
		prompts[[2]int{rows[i].session, rows[i].turn}] = rows[i].prompt
	}
	kinds := map[string]int{}
	for i := range rows {
		r := &rows[i]
		last, known := prompts[[2]int{r.session, r.turn - 1}]
		switch full := (r.prompt - 1) / 16 * 16; {
		case r.cached == full:
			kinds["sent before"]++
		case r.turn == 0 && r.cached == cold[r.system()]:
			kinds["unseen"]++
		case known && r.cached == last/16*16:
			kinds["next turn"]++
		case r.turn == 1 && known && m.Family(r.session) >= 0 && r.cached > last && r.cached < last+200:
			kinds["family"]++ // a relative's answer, too, was cached
		case r.turn > 0 && !known:
			kinds["unknown"]++ // the last turn is not among the rows
		default:
			t.Errorf("line %d: session %d, turn %d of %d tokens: got %d cached", r.line, r.session, r.turn, r.prompt, r.cached)
		}
	}
	for kind, want := range map[string]int{"sent before": 61, "unseen": 39, "next turn": 97, "family": 3, "unknown": 19} {
		if kinds[kind] != want {
			t.Errorf("%s: got %d rows, want %d", kind, kinds[kind], want)
		}
	}
}

func moments(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, variance
}
