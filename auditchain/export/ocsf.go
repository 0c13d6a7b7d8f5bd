package export

import (
	"encoding/json"
	"path"

	"github.com/agentd/agentd/auditchain"
)

// OCSF numbers (schema.ocsf.io, version 1.6.0).
const (
	ocsfVersion      = "1.6.0"
	ocsfCategory     = 6 // Application Activity
	ocsfLifecycle    = 6002
	ocsfAPIActivity  = 6003
	ocsfStart        = 3 // activities of Application Lifecycle
	ocsfStop         = 4
	ocsfOther        = 99
	ocsfInfo         = 1 // severities
	ocsfMedium       = 3
	ocsfStatusFailed = 2
	ocsfRegularFile  = 1
)

type ocsfEvent struct {
	ActivityID   int             `json:"activity_id"`
	ActivityName string          `json:"activity_name"`
	CategoryUID  int             `json:"category_uid"`
	ClassUID     int             `json:"class_uid"`
	TypeUID      int             `json:"type_uid"`
	SeverityID   int             `json:"severity_id"`
	StatusID     int             `json:"status_id,omitempty"`
	Time         int64           `json:"time"`
	Metadata     ocsfMetadata    `json:"metadata"`
	App          *ocsfProduct    `json:"app,omitempty"`
	Actor        *ocsfActor      `json:"actor,omitempty"`
	API          *ocsfAPI        `json:"api,omitempty"`
	Source       *ocsfEndpoint   `json:"src_endpoint,omitempty"`
	Unmapped     json.RawMessage `json:"unmapped"`
}

type ocsfMetadata struct {
	Version        string      `json:"version"`
	Product        ocsfProduct `json:"product"`
	UID            string      `json:"uid"`
	LogName        string      `json:"log_name"`
	EventCode      string      `json:"event_code"`
	TenantUID      string      `json:"tenant_uid"`
	CorrelationUID string      `json:"correlation_uid,omitempty"`
	Sequence       int64       `json:"sequence"`
}

type ocsfProduct struct {
	Name       string `json:"name"`
	VendorName string `json:"vendor_name"`
}

type ocsfActor struct {
	AppName string       `json:"app_name"`
	Session *ocsfSession `json:"session,omitempty"`
	User    *ocsfUser    `json:"user,omitempty"`
	Process *ocsfProcess `json:"process,omitempty"`
}

type ocsfUser struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

type ocsfProcess struct {
	PID  int       `json:"pid"`
	File *ocsfFile `json:"file,omitempty"`
}

type ocsfFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	TypeID int    `json:"type_id"`
}

type ocsfSession struct {
	UID string `json:"uid"`
}

type ocsfAPI struct {
	Operation string       `json:"operation"`
	Service   *ocsfService `json:"service,omitempty"`
}

type ocsfService struct {
	Name string `json:"name"`
}

type ocsfEndpoint struct {
	Name string `json:"name"`
}

// appendOCSF maps a record to API Activity, or to Application Lifecycle if it is
// about the agent itself. The unmodified record is under unmapped.
func appendOCSF(dst []byte, origin string, e *auditchain.Entry) ([]byte, error) {
	record, err := e.MarshalJSON()
	if err != nil {
		return dst, err
	}
	product := ocsfProduct{Name: "agentd", VendorName: "agentd"}
	event := ocsfEvent{
		ActivityID: ocsfOther, ActivityName: string(e.Kind), CategoryUID: ocsfCategory, ClassUID: ocsfAPIActivity,
		SeverityID: ocsfInfo, Time: e.Time.UnixMilli(), Unmapped: record,
		Metadata: ocsfMetadata{
			Version: ocsfVersion, Product: product, UID: uid(origin, e), LogName: origin, EventCode: string(e.Kind),
			TenantUID: e.Tenant, CorrelationUID: e.Correlation, Sequence: e.Seq,
		},
	}
	if severityOf(e.Kind) == medium {
		event.SeverityID, event.StatusID = ocsfMedium, ocsfStatusFailed
	}
	if e.Kind == auditchain.KindLifecycle {
		event.ClassUID, event.App = ocsfLifecycle, &product
		event.ActivityID = lifecycleActivity(e)
	} else {
		event.describeCall(origin, e)
	}
	if who := actorOf(e); who != nil {
		event.describeActor(origin, who)
	}
	event.TypeUID = event.ClassUID*100 + event.ActivityID
	return appendLine(dst, &event)
}

// describeCall fills the members that API Activity requires. A record does not
// state which end made the call, so its own agent is given as the source.
func (v *ocsfEvent) describeCall(origin string, e *auditchain.Entry) {
	v.Actor = &ocsfActor{AppName: origin}
	if e.Session != "" {
		v.Actor.Session = &ocsfSession{e.Session}
	}
	v.API = &ocsfAPI{Operation: e.Capability}
	if e.Capability == "" {
		v.API.Operation = string(e.Kind)
	}
	if e.Peer != "" {
		v.API.Service = &ocsfService{e.Peer}
	}
	v.Source = &ocsfEndpoint{origin}
}

// describeActor names who did what the record is about.
func (v *ocsfEvent) describeActor(origin string, who *auditchain.Actor) {
	if v.Actor == nil {
		v.Actor = &ocsfActor{AppName: origin}
	}
	v.Actor.User = &ocsfUser{Name: who.User, UID: numberOf(who.UID)}
	if who.PID == 0 {
		return
	}
	v.Actor.Process = &ocsfProcess{PID: who.PID}
	if who.Executable != "" {
		v.Actor.Process.File = &ocsfFile{Name: path.Base(who.Executable), Path: who.Executable, TypeID: ocsfRegularFile}
	}
}

// lifecycleActivity distinguishes starts and stops from other events.
func lifecycleActivity(e *auditchain.Entry) int {
	var body struct {
		Event string `json:"event"`
	}
	_ = json.Unmarshal(e.Body, &body) // an erased body has no event
	switch body.Event {
	case "start", "started":
		return ocsfStart
	case "stop", "stopped":
		return ocsfStop
	}
	return ocsfOther
}
