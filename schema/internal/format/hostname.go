package format

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isHostname accepts labels separated by dots: of letters, digits and inner hyphens, or
// A-labels, which must stand for a valid U-label; with international, U-labels as well
// (RFC 5890). No label is longer than 63 and no name longer than 253 characters.
func isHostname(text []byte, international bool) bool {
	name := string(text)
	if international {
		name = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(name)
	}
	const most = 253
	if len(name) > 4*most {
		return false
	}
	total, bidi := 0, false
	var labels [][]rune
	for label := range strings.SplitSeq(name, ".") {
		plain, size := readLabel(label, international)
		if size == 0 {
			return false
		}
		total += size + 1
		labels = append(labels, plain)
		bidi = bidi || slices.ContainsFunc(plain, isRightToLeft) || hasRune(plain, 0x660, 0x669)
	}
	for _, label := range labels {
		if bidi && !fitsBidi(label) {
			return false
		}
	}
	return total-1 <= most
}

// readLabel returns the characters that a label stands for and the length that it takes
// in DNS, or 0 if it is none.
func readLabel(label string, international bool) (plain []rune, size int) {
	ascii := true
	for i := range len(label) {
		ascii = ascii && label[i] < utf8.RuneSelf
	}
	switch {
	case len(label) == 0 || len(label) > 4*maxLabel:
		return nil, 0
	case !ascii:
		plain = []rune(label)
		if !international || !isULabel(plain) {
			return nil, 0
		}
		if size = len("xn--") + len(punycode(plain)); size > maxLabel {
			return nil, 0
		}
		return plain, size
	case !isDomain([]byte(label)):
		return nil, 0
	case len(label) >= 4 && label[2:4] == "--":
		// Hyphens at these places are reserved for A-labels.
		if !strings.EqualFold(label[:2], "xn") {
			return nil, 0
		}
		plain, ok := fromPunycode(label[4:])
		if !ok || !isULabel(plain) || !strings.EqualFold(punycode(plain), label[4:]) {
			return nil, 0
		}
		return plain, len(label)
	}
	return []rune(label), len(label)
}

// isRightToLeft reports whether a letter has the Bidi class R or AL.
func isRightToLeft(r rune) bool {
	return unicode.IsLetter(r) && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko,
		unicode.Samaritan, unicode.Mandaic, unicode.Adlam)
}

// fitsBidi follows the rule of RFC 5893 section 2 for a label of a name with characters
// that run from right to left.
func fitsBidi(label []rune) bool {
	right := isRightToLeft(label[0])
	if !right && !unicode.IsLetter(label[0]) {
		return false
	}
	end := len(label)
	for end > 0 && unicode.IsMark(label[end-1]) {
		end--
	}
	if last := label[end-1]; !unicode.IsLetter(last) && !unicode.IsDigit(last) {
		return false
	}
	for _, r := range label {
		if unicode.IsLetter(r) && isRightToLeft(r) != right || !right && r >= 0x660 && r <= 0x669 {
			return false
		}
	}
	european := hasRune(label, '0', '9') || hasRune(label, 0x6F0, 0x6F9)
	return !right || !european || !hasRune(label, 0x660, 0x669)
}

// isULabel follows RFC 5891 section 4.2 and the tables of RFC 5892, as far as general
// categories tell: letters, digits and marks, characters that some context allows, no
// mark first, and no hyphens at the ends or reserved places.
func isULabel(label []rune) bool {
	n := len(label)
	if n == 0 || label[0] == '-' || label[n-1] == '-' || n >= 4 && label[2] == '-' && label[3] == '-' || unicode.IsMark(label[0]) {
		return false
	}
	beyond := false
	for i, r := range label {
		beyond = beyond || r >= utf8.RuneSelf
		if !isLabelRune(r) && !fitsContext(label, i) {
			return false
		}
		if (r >= 0x660 && r <= 0x669) && hasRune(label, 0x6F0, 0x6F9) || (r >= 0x6F0 && r <= 0x6F9) && hasRune(label, 0x660, 0x669) {
			return false // two sets of Arabic digits do not mix
		}
	}
	return beyond
}

// isLabelRune reports whether a character may stand anywhere in a label.
func isLabelRune(r rune) bool {
	switch r {
	case '-', 0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007: // PVALID by exception
		return true
	case 0x640, 0x7FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B: // disallowed by exception
		return false
	}
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return !unicode.IsUpper(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Nd, r))
}

// hasRune reports whether a character of a range occurs.
func hasRune(label []rune, low, high rune) bool {
	for _, r := range label {
		if low <= r && r <= high {
			return true
		}
	}
	return false
}

// fitsContext reports whether a character stands where appendix A of RFC 5892 allows it.
func fitsContext(label []rune, i int) bool {
	var before, after rune
	if i > 0 {
		before = label[i-1]
	}
	if i+1 < len(label) {
		after = label[i+1]
	}
	switch label[i] {
	case 0xB7: // middle dot, between two l
		return before == 'l' && after == 'l'
	case 0x375: // Greek keraia
		return unicode.Is(unicode.Greek, after)
	case 0x5F3, 0x5F4: // Hebrew geresh and gershayim
		return unicode.Is(unicode.Hebrew, before)
	case 0x30FB: // Katakana middle dot, with some Japanese character
		for _, r := range label {
			if r != 0x30FB && unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) {
				return true
			}
		}
	case 0x200C: // behind a virama, or where it keeps Arabic letters from joining
		return isVirama(before) || joinsAfter(before) && after >= 0x622 && after <= 0x64A && unicode.IsLetter(after)
	case 0x200D: // behind a virama
		return isVirama(before)
	}
	return false
}

// joinsAfter reports whether an Arabic letter joins the one behind it.
func joinsAfter(r rune) bool {
	switch {
	case r < 0x620 || r > 0x64A, r >= 0x621 && r <= 0x625, r == 0x627, r == 0x629, r >= 0x62F && r <= 0x632, r == 0x648:
		return false
	}
	return true
}

// isVirama reports whether a character has the canonical combining class 9. These are
// the ones of scripts that use joiners.
func isVirama(r rune) bool {
	switch r {
	case 0x94D, 0x9CD, 0xA4D, 0xACD, 0xB4D, 0xBCD, 0xC4D, 0xCCD, 0xD3B, 0xD3C, 0xD4D, 0xDCA, 0xE3A, 0xF84, 0x1039, 0x103A,
		0x1714, 0x1734, 0x17D2, 0x1A60, 0x1B44, 0x1BAA, 0x1BAB, 0x1BF2, 0x1BF3, 0xA806, 0xA8C4, 0xA953, 0xA9C0, 0xAAF6, 0xABED:
		return true
	}
	return false
}

// The parameters of RFC 3492 section 5.
const (
	punyBase, punyMin, punyMax   = 36, 1, 26
	punySkew, punyDamp           = 38, 700
	punyFirst, punyBias, punyTop = 128, 72, 1 << 28
)

// punyAdapt is the adaptation of the bias (RFC 3492 section 6.1).
func punyAdapt(delta, count int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}

// fromPunycode decodes what follows xn-- (RFC 3492 section 6.2).
func fromPunycode(text string) ([]rune, bool) {
	var out []rune
	if at := strings.LastIndexByte(text, '-'); at >= 0 {
		out, text = []rune(text[:at]), text[at+1:]
	}
	n, i, bias := rune(punyFirst), 0, punyBias
	for len(text) > 0 {
		start, weight := i, 1
		for k := punyBase; ; k += punyBase {
			if len(text) == 0 {
				return nil, false
			}
			digit := bytes.IndexByte([]byte("abcdefghijklmnopqrstuvwxyz0123456789"), text[0]|0x20)
			if text[0] >= '0' && text[0] <= '9' {
				digit = int(text[0]-'0') + 26
			}
			text = text[1:]
			if digit < 0 {
				return nil, false
			}
			if i += digit * weight; i > punyTop {
				return nil, false
			}
			t := min(max(k-bias, punyMin), punyMax)
			if digit < t {
				break
			}
			if weight *= punyBase - t; weight > punyTop {
				return nil, false
			}
		}
		bias = punyAdapt(i-start, len(out)+1, start == 0)
		n += rune(i / (len(out) + 1))
		i %= len(out) + 1
		if n > unicode.MaxRune {
			return nil, false
		}
		out = append(out[:i], append([]rune{n}, out[i:]...)...)
		i++
	}
	return out, true
}

// punycode encodes a label (RFC 3492 section 6.3).
func punycode(label []rune) string {
	var out []byte
	for _, r := range label {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(punyFirst), 0, punyBias
	for done := basic; done < len(label); {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := punyBase; ; k += punyBase {
				t := min(max(k-bias, punyMin), punyMax)
				if q < t {
					break
				}
				out = append(out, punyDigit(t+(q-t)%(punyBase-t)))
				q = (q - t) / (punyBase - t)
			}
			out = append(out, punyDigit(q))
			bias = punyAdapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return string(out)
}

// punyDigit writes a digit of base 36.
func punyDigit(d int) byte {
	if d < 26 {
		return 'a' + byte(d)
	}
	return '0' + byte(d-26)
}
