package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/wneessen/go-mail"

	"github.com/agentd/agentd/internal/failure"
)

// translate makes an error of the library, which names hosts and repeats what the server
// says, into one for the caller.
func translate(ctx context.Context, err error) *failure.Error {
	if shown := failure.As(err); shown != nil {
		return shown
	}
	if sent := new(mail.SendError); errors.As(err, &sent) {
		return translateSending(ctx, sent)
	}
	if ended := failure.Ended(ctx, "sending the mail"); ended != nil {
		return ended
	}
	return translateConnecting(err)
}

// translateSending is for what goes wrong once the server is ready for a mail.
func translateSending(ctx context.Context, err *mail.SendError) *failure.Error {
	status := err.ErrorCode()
	cause := fmt.Errorf("%s: status %d %s", err.Reason, status, err.EnhancedStatusCode())
	switch {
	case status == 0 && err.Reason == mail.ErrSMTPDataClose:
		code := failure.Network
		if ctx.Err() != nil {
			code = failure.Timeout
		}
		return failure.Errorf(code, "the mail server did not confirm the mail, which may have been sent or not").Because(cause)
	case status == 0:
		if ended := failure.Ended(ctx, "sending the mail"); ended != nil {
			return ended.Because(cause)
		}
		return failure.Errorf(failure.Network, "the mail server broke off before it had the mail").Because(cause)
	case status < 500:
		return failure.Errorf(failure.Unavailable, "the mail server cannot take the mail at present (status %d)", status).Because(cause)
	case status == 552:
		return failure.Errorf(failure.TooLarge, "the mail is larger than the mail server accepts (status 552)").Because(cause)
	case err.Reason == mail.ErrSMTPRcptTo:
		return failure.Errorf(failure.NotAllowed, "the mail server takes no mail for a recipient, and nobody was sent any (status %d)", status).Because(cause)
	default:
		return failure.Errorf(failure.NotAllowed, "the mail server refuses the mail (status %d)", status).Because(cause)
	}
}

// translateConnecting is for what goes wrong before that. It is the operator who chose the
// server, and has to mend it: hence the code, whose causes are logged.
func translateConnecting(err error) *failure.Error {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		cause := fmt.Errorf("status %d", answer.Code)
		switch answer.Code {
		case 454, 530, 534, 535, 538: // RFC 4954, section 6
			return failure.Errorf(failure.Unavailable, "the mail server does not let this agent sign in (status %d)", answer.Code).Because(cause)
		}
		return failure.Errorf(failure.Unavailable, "the mail server does not accept the connection (status %d)", answer.Code).Because(cause)
	}
	var noSMTP textproto.ProtocolError
	if errors.As(err, &noSMTP) {
		// It quotes the server, which has seen the password.
		return failure.Errorf(failure.Unavailable, "the mail server does not answer with SMTP").Because(errors.New("an answer has no status"))
	}
	var noName *net.DNSError
	var certificate *tls.CertificateVerificationError
	text := "the mail server broke off, or does not speak SMTP as it should"
	switch {
	case errors.As(err, &noName):
		text = "the name of the mail server cannot be resolved"
	case errors.As(err, &certificate):
		text = "the certificate of the mail server is not valid for it"
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "the mail server refuses the connection"
	case strings.Contains(err.Error(), "does not support STARTTLS"):
		// The library has no type for it.
		text = "the mail server offers no STARTTLS, and nothing is sent without"
	}
	return failure.Errorf(failure.Unavailable, "%s", text).Because(err)
}
