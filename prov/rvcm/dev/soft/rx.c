/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream's incoming end. One recv fetches what is there into a buffer, and the frames in it are
 * taken one by one; most messages are whole then. A frame that is not has either to wait for its
 * rest, or, if much payload is missing and its place is known, goes direct: what is in the buffer
 * is copied to its place and the rest read into it straight from the socket, with the trailer and
 * the next header behind it in the same readv.
 *
 * When long payloads are likely (bulk) little is read at a time, so that the next one goes direct;
 * until a few short ones have come. One system call and a copy of all that it has read are cheaper
 * than two system calls, up to about a buffer.
 *
 * A recv that finds nothing takes the socket's lock all the same, and who sends to us needs that
 * lock to hand over a segment, if he is on this machine: asked over and over in the middle of a
 * long payload, we would slow down what we wait for. So there poll(2) is asked first, which takes
 * none, once a read has found nothing.
 *
 * A frame may be one that cannot be taken now: no room in the CQ, no message free in the pool, no
 * memory. Then the stream stalls: nothing is read and TCP tells the peer.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "dev/soft/crc.h"
#include "dev/soft/soft_impl.h"

#define RX_ROOM_MIN    4096u /* a read of less is not worth a system call */
#define RX_ROUNDS_MAX  8     /* reads in one service */
#define RX_HEADER_PEEK (RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_HDR_BYTES_MAX)

/* The frame at r was found wrong. */
static int rx_wrong(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	rvcm_soft_term_send(qp, qp->rx.term, frame, rvcm_soft_term_status(qp->rx.term));
	return -EPROTO;
}

/* -- the buffer ----------------------------------------------------------------------------- */

/* Begin behind messages that are held, if there is such a buffer; it has room. */
static bool rx_reopen(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	rx->buf = rvcm_soft_buf_reopen(&qp->dev->bufs);
	if (!rx->buf)
		return false;
	rx->r = rx->buf->fill;
	rx->w = rx->buf->fill;
	return true;
}

/* What is not taken yet moves to where there is room for need bytes in all. */
static int rx_move(struct rvcm_soft_qp *qp, uint32_t need)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_soft_buf *old = rx->buf;
	struct rvcm_soft_buf *buf = old;
	uint32_t bytes = rx->w - rx->r;

	if (old && !bytes && old->refs == 1) {
		rx->r = 0;
		rx->w = 0;
	}
	if (old && RVCM_SOFT_BUF_BYTES - rx->r >= need &&
	    (need > RX_HEADER_PEEK || RVCM_SOFT_BUF_BYTES - rx->w >= RX_ROOM_MIN))
		return 0;
	if (!old && need <= RX_HEADER_PEEK && rx_reopen(qp))
		return 0;
	if (!old || old->refs > 1) {
		buf = rvcm_soft_buf_get(&qp->dev->bufs);
		if (!buf)
			return -ENOMEM;
	}
	if (bytes)
		memmove(buf->data, old->data + rx->r, bytes);
	if (old && old != buf)
		rvcm_soft_buf_put(&qp->dev->bufs, old);
	rx->buf = buf;
	rx->r = 0;
	rx->w = bytes;
	return 0;
}

static void rx_give_back(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->buf)
		rvcm_soft_buf_put(&qp->dev->bufs, rx->buf);
	rx->buf = NULL;
	rx->r = 0;
	rx->w = 0;
}

/*
 * Nothing is left in the buffer: give it back, so that a silent peer holds none. One with messages
 * that are still held, and with room, is read into further by whoever comes next, or a few small
 * messages would hold many buffers.
 */
static void rx_empty(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->buf && rx->buf->refs > 1 && RVCM_SOFT_BUF_BYTES - rx->w >= RX_ROOM_MIN) {
		rvcm_soft_buf_leave(&qp->dev->bufs, rx->buf, rx->w);
		rx->buf = NULL;
	}
	rx_give_back(qp);
}

/* -- frames --------------------------------------------------------------------------------- */

/* The frame whose first len bytes are at data: 1, 0 (more is due), or -EPROTO. */
static int rx_decode(struct rvcm_soft_qp *qp, const uint8_t *data, uint32_t len,
		     struct rvcm_soft_frame *frame)
{
	uint32_t have;
	int rc;

	if (len < RVCM_SOFT_MPA_HEADER_BYTES)
		return 0;
	frame->ulpdu = data + RVCM_SOFT_MPA_HEADER_BYTES;
	frame->ulpdu_bytes = rvcm_soft_mpa_header_decode(data);
	frame->fpdu_bytes = (uint32_t)rvcm_soft_mpa_fpdu_len(frame->ulpdu_bytes);
	frame->info = NULL;
	frame->header_bytes = 0;
	frame->bytes = 0;
	frame->hdr.last = true;
	if (!frame->ulpdu_bytes) /* RFC 6581 section 9.1: a ready-to-receive frame */
		return 1;
	have = len - RVCM_SOFT_MPA_HEADER_BYTES;
	if (have > frame->ulpdu_bytes)
		have = frame->ulpdu_bytes;
	rc = rvcm_soft_wire_decode(frame->ulpdu, have, &frame->hdr, &qp->rx.term);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		qp->rx.term = RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED; /* shorter than its header */
		return have < frame->ulpdu_bytes ? 0 : -EPROTO;
	}
	frame->info = rvcm_soft_wire_opcode_info(frame->hdr.opcode);
	frame->header_bytes = (uint32_t)rc;
	frame->bytes = frame->ulpdu_bytes - (uint32_t)rc;
	return 1;
}

static bool rx_crc_fits(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	const uint8_t *start = frame->ulpdu - RVCM_SOFT_MPA_HEADER_BYTES;
	uint32_t crc = 0;

	if (qp->crc)
		crc = rvcm_soft_crc_update(0, start,
					   frame->ulpdu_bytes + RVCM_SOFT_MPA_HEADER_BYTES);
	return rvcm_soft_mpa_trailer_check(frame->ulpdu_bytes, qp->crc, crc,
					   frame->ulpdu + frame->ulpdu_bytes);
}

/* Take a frame that is wholly in the buffer, and whose CRC fits. */
static int rx_place(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	int rc = 0;

	if (frame->info)
		rc = rvcm_soft_place_whole(qp, frame, frame->ulpdu + frame->header_bytes);
	if (rc == -EPROTO)
		return qp->dead ? rc : rx_wrong(qp, frame);
	rx->stalled = rc < 0;
	if (!rc) {
		rx->r += frame->fpdu_bytes;
		qp->tx.awaited = RVCM_SOFT_AWAITED_NOT;
	}
	return rc;
}

/* Take a frame that is wholly in the buffer. */
static int rx_take(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	if (qp->crc && !rx_crc_fits(qp, frame)) {
		qp->rx.term = RVCM_SOFT_WIRE_TERM_L_CRC;
		return rx_wrong(qp, NULL);
	}
	return rx_place(qp, frame);
}

/*
 * A message in two segments of which both are in the buffer, as one of 64 KiB comes, can stay there
 * like one in one: what is short moves up to what is long. True: *frame is both now.
 */
static bool rx_join(struct rvcm_soft_qp *qp, struct rvcm_soft_frame *frame)
{
	const struct rvcm_soft_rx *rx = &qp->rx;
	uint32_t at = rx->r + frame->fpdu_bytes;
	uint8_t *end = rx->buf->data + at;
	struct rvcm_soft_frame next;

	if (!frame->info || frame->info->tagged || frame->hdr.last || at == rx->w ||
	    rx_decode(qp, end, rx->w - at, &next) != 1 || rx->w - at < next.fpdu_bytes ||
	    next.bytes > frame->bytes || !rvcm_soft_message_joins(qp, frame, &next))
		return false;
	if (qp->crc && (!rx_crc_fits(qp, frame) || !rx_crc_fits(qp, &next)))
		return false;
	end = rx->buf->data + rx->r + RVCM_SOFT_MPA_HEADER_BYTES + frame->header_bytes +
	      frame->bytes;
	memmove(end, next.ulpdu + next.header_bytes, next.bytes);
	frame->hdr.last = true;
	frame->bytes += next.bytes;
	frame->fpdu_bytes += next.fpdu_bytes;
	return true;
}

/* Take a frame that is wholly in the buffer and not its message's last. */
static int rx_part(struct rvcm_soft_qp *qp, struct rvcm_soft_frame *frame)
{
	if (rx_join(qp, frame))
		return rx_place(qp, frame);
	qp->rx.stalled = frame->info && rvcm_soft_head_waits(qp, frame, frame->bytes);
	return qp->rx.stalled ? -EAGAIN : rx_take(qp, frame);
}

/* -- direct --------------------------------------------------------------------------------- */

static uint32_t rx_trailer_bytes(const struct rvcm_soft_frame *frame)
{
	return frame->fpdu_bytes - RVCM_SOFT_MPA_HEADER_BYTES - frame->ulpdu_bytes;
}

/* n bytes of payload, from the start of the sink, are in place. */
static void rx_sink_advance(struct rvcm_soft_rx *rx, struct rvcm_soft_qp *qp, size_t n)
{
	struct rvcm_soft_sink *sink = &rx->sink;
	uint32_t i = 0;

	rx->left -= (uint32_t)n;
	while (n) {
		struct iovec *iov = &sink->iov[i];
		size_t part = n < iov->iov_len ? n : iov->iov_len;

		if (qp->crc)
			rx->crc = rvcm_soft_crc_update(rx->crc, iov->iov_base, part);
		iov->iov_base = (uint8_t *)iov->iov_base + part;
		iov->iov_len -= part;
		n -= part;
		if (!iov->iov_len)
			i++;
	}
	sink->n -= i;
	memmove(sink->iov, sink->iov + i, sink->n * sizeof(*sink->iov));
}

/*
 * The frame at r is not whole. Let it go direct if that is worth it: 1; 0: it waits; or as
 * rvcm_soft_place_open.
 */
static int rx_begin_direct(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	const uint8_t *payload = frame->ulpdu + frame->header_bytes;
	uint32_t have = rx->w - rx->r - RVCM_SOFT_MPA_HEADER_BYTES;
	int rc;

	have = have > frame->header_bytes ? have - frame->header_bytes : 0;
	if (have >= frame->bytes || frame->bytes - have < qp->dev->tun.direct_bytes_min)
		return 0;
	rx->stalled = rvcm_soft_head_waits(qp, frame, have);
	if (rx->stalled)
		return -EAGAIN;
	if (!rvcm_soft_place_direct(qp, frame))
		return 0;
	rc = rvcm_soft_place_open(qp, frame, &rx->sink);
	if (rc == -ENOBUFS)
		return 0; /* it will be parked, whole */
	if (rc == -EPROTO)
		return qp->dead ? rc : rx_wrong(qp, frame);
	rx->stalled = rc < 0;
	if (rc)
		return rc;
	rx->direct = true;
	if (!qp->pool || frame->info->tagged)
		rx->bulk = RVCM_SOFT_BULK;
	rx->frame = *frame;
	rx->left = frame->bytes;
	rx->key_drops = qp->dev->key_drops;
	if (qp->crc)
		rx->crc = rvcm_soft_crc_update(0, frame->ulpdu - RVCM_SOFT_MPA_HEADER_BYTES,
					       frame->header_bytes + RVCM_SOFT_MPA_HEADER_BYTES);
	rvcm_soft_place_copy(&rx->sink, payload, have);
	rx_sink_advance(rx, qp, have);
	rx->frame.ulpdu = NULL;
	rx_empty(qp);
	return 1;
}

/* All payload is in place; the trailer is due. 1: the frame is taken; 0: wait; -EPROTO. */
static int rx_end_direct(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	uint32_t trailer = rx_trailer_bytes(&rx->frame);
	const uint8_t *end = rx->buf->data + rx->r;
	int rc;

	if (rx->left || rx->w - rx->r < trailer)
		return 0;
	if (!rvcm_soft_mpa_trailer_check(rx->frame.ulpdu_bytes, qp->crc, rx->crc, end)) {
		rx->term = RVCM_SOFT_WIRE_TERM_L_CRC;
		return rx_wrong(qp, NULL);
	}
	rx->r += trailer;
	rx->direct = false;
	qp->tx.awaited = RVCM_SOFT_AWAITED_NOT;
	rc = rvcm_soft_place_close(qp, &rx->frame);
	if (rc)
		return qp->dead ? rc : rx_wrong(qp, &rx->frame);
	return 1;
}

/* -- reading -------------------------------------------------------------------------------- */

/* Take what is in the buffer: 0: more is due; -EAGAIN: stalled; -EPROTO: it is over. */
static int rx_parse(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_soft_frame frame;
	int rc;

	if (rx->direct) {
		rc = rx_end_direct(qp);
		if (rc <= 0)
			return rc;
	}
	while (rx->w > rx->r) {
		uint32_t have = rx->w - rx->r;

		rc = rx_decode(qp, rx->buf->data + rx->r, have, &frame);
		if (rc < 0)
			return rx_wrong(qp, &frame);
		if (rc == 0)
			return rx_move(qp, RX_HEADER_PEEK) ? -EAGAIN : 0;
		if (RVCM_SOFT_UNLIKELY(have < frame.fpdu_bytes)) {
			rc = rx_begin_direct(qp, &frame);
			if (rc)
				return rc < 0 ? rc : 0;
			return rx_move(qp, frame.fpdu_bytes) ? -EAGAIN : 0;
		}
		rc = RVCM_SOFT_LIKELY(frame.hdr.last) ? rx_take(qp, &frame) : rx_part(qp, &frame);
		if (rc)
			return rc;
		if (RVCM_SOFT_UNLIKELY(rx->bulk) && frame.info &&
		    frame.bytes < qp->dev->tun.direct_bytes_min)
			rx->bulk--;
	}
	rx_empty(qp);
	return 0;
}

/* The stream's end, or an error of the socket. */
static void rx_end(struct rvcm_soft_qp *qp, int err)
{
	const struct rvcm_soft_rx *rx = &qp->rx;

	if (atomic_load_explicit(&qp->silent, memory_order_acquire))
		err = ETIMEDOUT;
	if (qp->tx.err && !err)
		err = qp->tx.err;
	if (!err && (rx->direct || rx->w != rx->r || rx->message_open))
		err = ECONNRESET; /* in the middle of a frame or message */
	if (err)
		rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, rvcm_soft_qp_lost_status(err), err);
	else
		rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_PEER_CLOSED, RVCM_STATUS_OK, 0);
}

/* Is the place of a direct WRITE still registered? */
static bool rx_sink_stands(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	const struct rvcm_soft_wire_hdr *hdr = &rx->frame.hdr;
	void *ptr;
	int rc;

	if (rx->key_drops == qp->dev->key_drops || hdr->opcode != RVCM_SOFT_WIRE_WRITE)
		return true;
	rx->key_drops = qp->dev->key_drops;
	rc = rvcm_soft_key_check(&qp->dev->keys, hdr->stag, hdr->to, rx->frame.bytes,
				 RVCM_DEV_ACCESS_REMOTE_WRITE, &ptr);
	if (rc)
		rx->term = rvcm_soft_key_term(rc, true);
	return !rc;
}

/*
 * How much to read behind the payload that is left: little, so that what follows goes direct as
 * well; but if that much is left that it is hardly worth the call, all that there is room for.
 */
static uint32_t rx_tail(const struct rvcm_soft_qp *qp)
{
	const struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->left < qp->dev->tun.direct_bytes_min && !rx->frame.info->tagged)
		return RVCM_SOFT_BUF_BYTES - (rx->w - rx->r);
	return RVCM_SOFT_MPA_TRAILER_BYTES_MAX + qp->dev->tun.bulk_read_bytes;
}

static ssize_t rx_read_direct(struct rvcm_soft_qp *qp, size_t *asked)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_soft_sink *sink = &rx->sink;
	uint32_t tail = rx_tail(qp);
	struct msghdr msg = { .msg_iov = sink->iov, .msg_iovlen = sink->n + 1 };
	ssize_t n;

	if (rx_move(qp, rx->w - rx->r + tail))
		return 0;
	sink->iov[sink->n].iov_base = rx->buf->data + rx->w;
	sink->iov[sink->n].iov_len = tail;
	*asked = rx->left + tail;
	n = recvmsg(qp->fd, &msg, MSG_DONTWAIT);
	if (n > 0) {
		size_t placed = (size_t)n < rx->left ? (size_t)n : rx->left;

		rx_sink_advance(rx, qp, placed);
		rx->w += (uint32_t)((size_t)n - placed);
	}
	return n;
}

static ssize_t rx_read_plain(struct rvcm_soft_qp *qp, size_t *asked)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	ssize_t n;

	*asked = RVCM_SOFT_BUF_BYTES - rx->w;
	if (rx->bulk && *asked > qp->dev->tun.bulk_read_bytes)
		*asked = qp->dev->tun.bulk_read_bytes;
	n = recv(qp->fd, rx->buf->data + rx->w, *asked, MSG_DONTWAIT);
	if (n > 0)
		rx->w += (uint32_t)n;
	return n;
}

/*
 * Is there still nothing for a QP that has been quiet, and so has no buffer? (An error of the
 * socket is told once: it is taken here.)
 */
static __attribute__((noinline)) bool rx_quiet(struct rvcm_soft_qp *qp)
{
	char c;

	if (recv(qp->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
		return false;
	if (errno != EAGAIN && errno != EINTR)
		rx_end(qp, errno);
	return true;
}

/* Is there nothing for a payload under way? What is not known counts as no. */
static bool rx_dry(const struct rvcm_soft_qp *qp)
{
	struct pollfd pollfd = { .fd = qp->fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 0;
}

/* Read once. True: the socket may have more. */
static bool rx_read(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	size_t asked = 0;
	ssize_t n;

	if (RVCM_SOFT_UNLIKELY(qp->cq->idle >= RVCM_SOFT_CQ_QUIET) && !rx->buf && rx_quiet(qp))
		return false;
	if (rx_move(qp, RX_HEADER_PEEK))
		return false;
	if (RVCM_SOFT_UNLIKELY(rx->direct) && !rx_sink_stands(qp)) {
		(void)rx_wrong(qp, &rx->frame);
		return false;
	}
	if (RVCM_SOFT_UNLIKELY(rx->dry) && rx_dry(qp))
		return false;
	n = rx->direct ? rx_read_direct(qp, &asked) : rx_read_plain(qp, &asked);
	rx->dry = n < 0 && rx->direct;
	if (RVCM_SOFT_LIKELY(n > 0))
		return rx_parse(qp) == 0 && (size_t)n == asked;
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (rx->w == rx->r && qp->cq->n_qps > qp->dev->tun.poll_direct_max)
			rx_empty(qp); /* of few, each may keep the one that it will need again */
		return false;
	}
	if (n == 0 && rx->park.head)
		rx->stalled = true; /* the end waits for the messages before it */
	else if (asked)
		rx_end(qp, n < 0 ? errno : 0);
	return false;
}

/* Take parked messages whose turn has come. */
static void rx_replay(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_frame oldest;

	if (rvcm_soft_park_replay(qp) != -EPROTO || qp->dead)
		return;
	rvcm_soft_park_oldest(qp, &oldest);
	(void)rx_wrong(qp, &oldest);
}

void rvcm_soft_rx_service(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (RVCM_SOFT_UNLIKELY(rx->park.head != NULL)) {
		rx_replay(qp);
		if (qp->dead)
			return;
	}
	if (RVCM_SOFT_UNLIKELY(rx->stalled)) {
		rx->stalled = false;
		if (rx_parse(qp))
			return;
	}
	for (int i = 0; i < RX_ROUNDS_MAX && rx_read(qp); i++)
		;
}

void rvcm_soft_rx_trim(struct rvcm_soft_qp *qp)
{
	if (qp->rx.w == qp->rx.r)
		rx_empty(qp);
}

void rvcm_soft_rx_drop(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	rvcm_soft_park_drop(qp);
	rx_give_back(qp);
	rx->direct = false;
	rx->stalled = false;
}
