package convert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A Format is a kind of trace file.
type Format uint8

// The formats.
const (
	Unknown       Format = iota
	Arrow                // a kvfleet trace, ".arrows"
	Mooncake             // JSONL, 512-token chained hash ids
	Azure                // CSV, Azure LLM inference 2023 and 2024
	Weka                 // JSON, one Claude-Code session a file, or a directory of them
	RAGPulse             // JSONL, component ids
	Vidur                // CSV, Splitwise traces as vidur has them
	VidurLengths         // the same without arrival times
	KvrouteRows          // CSV, finished rows of a kvroute run
	KvrouteProbe         // CSV, finished rows of a kvroute single-replica probe
	Blis                 // CSV, finished rows of blis observe
	LLMServingSim        // JSONL, finished rows of LLMServingSim's vLLM bench
	VLLMCPU              // CSV, finished rows of vLLM on a CPU, prompts as named pieces
)

// String returns the format's name.
func (f Format) String() string {
	names := [...]string{"unknown", "arrow", "mooncake", "azure", "weka", "ragpulse", "vidur", "vidur-lengths", "kvroute-rows", "kvroute-probe",
		"blis", "llmservingsim", "vllm-cpu"}
	if int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// Kvroute says that the rows are of the published fleet's own runs.
func (f Format) Kvroute() bool { return f == KvrouteRows || f == KvrouteProbe }

// ErrUnknown is what Detect reports of content it does not recognise.
var ErrUnknown = errors.New("not a trace this program knows; want a kvfleet .arrows, Mooncake, RAGPulse or LLMServingSim JSONL, " +
	"Azure, vidur, kvroute, blis or vllm-cpu CSV, or a Weka session file or a directory of them")

// Detect recognises the file or directory at path by its content.
func Detect(path string) (Format, error) {
	dir, err := kind(path)
	if err != nil {
		return Unknown, err
	}
	if dir {
		files, err := sessionFiles(path)
		if err != nil {
			return Unknown, err
		}
		path = files[0]
	}
	f, err := open(path)
	if err != nil {
		return Unknown, err
	}
	defer f.Close()
	format, err := detect(bufio.NewReaderSize(f, 64<<10))
	if err == nil && dir && format != Weka {
		err = fmt.Errorf("is a directory, and a trace in %s form is one file; name the file itself", format)
	}
	if err != nil {
		return Unknown, fileError(path, err)
	}
	return format, nil
}

// sessionFiles lists a directory's JSON files in order of name.
func sessionFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: directory holds no *.json session files", dir)
	}
	slices.Sort(files)
	return files, nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func detect(in *bufio.Reader) (Format, error) {
	head, err := in.Peek(64 << 10)
	if err != nil && err != io.EOF {
		return Unknown, err
	}
	switch {
	case len(head) == 0:
		return Unknown, errors.New("file is empty")
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}), bytes.HasPrefix(head, []byte("ARROW1")):
		return Arrow, nil
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return Unknown, errors.New("is a Git LFS pointer, not the data; fetch the file with git lfs pull")
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n")
	if bytes.HasPrefix(head, []byte("{")) {
		return detectJSON(head)
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return detectCSV(strings.TrimRight(string(line), "\r"))
}

const bom = "\xef\xbb\xbf"

// detectJSON looks at the keys of the first object until they tell the format.
// The object may be cut off.
func detectJSON(head []byte) (Format, error) {
	d := json.NewDecoder(bytes.NewReader(head))
	if _, err := d.Token(); err != nil {
		return Unknown, ErrUnknown
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		switch key {
		case "session_source": // an export of rows, which is not read back
			return Unknown, ErrUnknown
		case "block_size", "hash_id_scope", "requests":
			return Weka, nil
		case "input_toks", "queued_ts":
			return LLMServingSim, nil
		case "hash_ids":
			switch t, err := d.Token(); {
			case err != nil:
			case t == json.Delim('['):
				return Mooncake, nil
			case t == json.Delim('{'):
				return RAGPulse, nil
			}
			return Unknown, ErrUnknown
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
	}
	return Unknown, ErrUnknown
}

func detectCSV(header string) (Format, error) {
	names := strings.Split(header, ",")
	for i := range names {
		names[i] = strings.Trim(strings.TrimSpace(names[i]), `"`)
	}
	for _, c := range []struct {
		format  Format
		columns []string
	}{
		{Azure, azureColumns}, {Vidur, vidurColumns}, {VidurLengths, vidurColumns[1:]},
		{KvrouteRows, kvrouteRowColumns}, {KvrouteProbe, kvrouteProbeColumns},
		{Blis, blisColumns}, {VLLMCPU, vllmCPUColumns},
	} {
		if !slices.ContainsFunc(c.columns, func(name string) bool { return !slices.Contains(names, name) }) {
			return c.format, nil
		}
	}
	return Unknown, ErrUnknown
}
