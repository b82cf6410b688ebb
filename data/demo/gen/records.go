package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weft/data"
)

// record is a line of records.jsonl.
type record struct {
	Instruction string `json:"instruction"`
	Context     string `json:"context"`
	Response    string `json:"response"`
}

// makeRecords returns all records in a fixed mixed order.
func makeRecords() []record {
	all := slices.Concat(geography(), words(), nature(), calendar(), arithmetic(), measures(), listing(), reading())
	mixed := make([]record, len(all))
	for i, from := range data.Order(len(all), 2048, 0) {
		mixed[i] = all[from]
	}
	return mixed
}

func recordsFile(records []record) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func ask(question, answer string, args ...any) record {
	return record{Instruction: question, Response: fmt.Sprintf(answer, args...)}
}

func geography() (out []record) {
	for i, c := range capitals {
		country, city := c[0], c[1]
		asks := []string{"What is the capital of %s?", "Name the capital city of %s.", "Which city is the capital of %s?"}
		out = append(out, ask(fmt.Sprintf(asks[i%3], country), "The capital of %s is %s.", country, city))
		if i%2 == 0 {
			out = append(out, ask("In which country is the city of "+city+"?", "%s is in %s.", city, country))
		}
	}
	for i, planet := range planets {
		out = append(out, ask(fmt.Sprintf("Which planet is %s from the sun?", ordinals[i]),
			"%s is the %s planet from the sun.", planet, ordinals[i]))
	}
	return out
}

func words() (out []record) {
	for i, p := range opposites {
		asks := []string{"What is the opposite of %s?", "Give the opposite of the word %s."}
		out = append(out, ask(fmt.Sprintf(asks[i%2], p[0]), "The opposite of %s is %s.", p[0], p[1]))
	}
	for i, p := range plurals {
		asks := []string{"What is the plural of %s?", "Write the plural of the word %s."}
		out = append(out, ask(fmt.Sprintf(asks[i%2], p[0]), "The plural of %s is %s.", p[0], p[1]))
	}
	for i, p := range pasts {
		asks := []string{"What is the past tense of %s?", "Write the past tense of the verb %s."}
		out = append(out, ask(fmt.Sprintf(asks[i%2], p[0]), "The past tense of %s is %s.", p[0], p[1]))
	}
	for _, s := range sentences {
		out = append(out, ask("Write a sentence with the word "+s[0]+".", "%s", s[1]))
	}
	return out
}

func nature() (out []record) {
	for i, a := range animals {
		name, kind, place, young := a[0], a[1], a[2], a[3]
		out = append(out, ask(fmt.Sprintf("What is the young of %s called?", article(name)), "The young of %s is called %s.",
			article(name), article(young)))
		if i%2 == 0 {
			out = append(out, ask(fmt.Sprintf("What kind of animal is %s?", article(name)), "%s is %s.", upper(article(name)), article(kind)))
		} else {
			out = append(out, ask(fmt.Sprintf("Where does %s live?", article(name)), "%s lives %s.", upper(article(name)), place))
		}
	}
	for _, c := range colors {
		out = append(out, ask("What color is "+c[0]+"?", "%s is %s.", upper(c[0]), c[1]))
	}
	for _, e := range explanations {
		out = append(out, ask(e[0], "%s", e[1]))
	}
	return out
}

func calendar() (out []record) {
	for i, month := range months {
		next := months[(i+1)%len(months)]
		out = append(out,
			ask("Which month comes after "+month+"?", "%s comes after %s.", next, month),
			ask("Which month comes before "+next+"?", "%s comes before %s.", month, next))
	}
	for i, day := range days {
		next := days[(i+1)%len(days)]
		out = append(out, ask("Which day comes after "+day+"?", "%s comes after %s.", next, day))
	}
	return out
}

func arithmetic() (out []record) {
	for i := range 18 {
		a, b := 3+7*i%23, 2+5*i%17
		out = append(out,
			ask(fmt.Sprintf("Add %d and %d.", a, b), "%d plus %d is %d.", a, b, a+b),
			ask(fmt.Sprintf("What is %d minus %d?", a+b, b), "%d minus %d is %d.", a+b, b, a))
	}
	for i := range 16 {
		a, b := 2+i%4, 3+i/4*2
		out = append(out, ask(fmt.Sprintf("Multiply %d by %d.", a, b), "%d times %d is %d.", a, b, a*b))
	}
	return out
}

func measures() (out []record) {
	for i, u := range units {
		n := 2 + i%3
		out = append(out,
			ask(fmt.Sprintf("How many %s are in one %s?", u.smalls, u.large), "There are %d %s in one %s.", u.times, u.smalls, u.large),
			ask(fmt.Sprintf("How many %s are in %d %s?", u.smalls, n, u.larges), "There are %d %s in %d %s.", n*u.times, u.smalls, n, u.larges))
	}
	return out
}

func listing() (out []record) {
	for i, l := range lists {
		out = append(out,
			ask("Name three "+l.what+".", "Three %s are %s.", l.what, join(l.items[:3])),
			ask("List four "+l.what+".", "Four %s are %s.", l.what, join(l.items[2:])))
		mixed := []string{l.items[i%6], l.items[(i+2)%6], l.items[(i+4)%6]}
		sorted := slices.Sorted(slices.Values(mixed))
		if !strings.Contains(mixed[0], " ") { // words only: "a saw" and "the flute" have no clear place
			out = append(out, record{"Sort these words by the alphabet.", strings.Join(mixed, ", "), strings.Join(sorted, ", ")})
		}
	}
	return out
}

func reading() (out []record) {
	for _, s := range stories {
		for _, qa := range s.asks {
			out = append(out, record{qa[0], s.text, qa[1]})
			// The same with the text in the instruction: the published job's template leaves the context out.
			out = append(out, record{"Read the text and answer. " + s.text + " " + qa[0], "", qa[1]})
		}
	}
	return out
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// join lists items in a sentence.
func join(items []string) string {
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
