"""A Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Computes what `LlamaForCausalLM` computes, to the bit.

Shapes: B batch, T tokens, D hidden, H heads, K key-value heads, E head dimension, F feed-forward, V vocabulary.
Module names give Hugging Face's parameter names.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from protocol.model_spec import LlamaSpec


class Linear(nn.Linear):
    """Without torch's own initialisation: the values come from `parameters`, and no global generator is touched.

    Footgun: torch's usual way to skip it, the meta device, loads its whole compiler: a second of every process's start.
    """

    def reset_parameters(self) -> None:
        """Leaves the values undefined."""


class Embedding(nn.Embedding):
    """As `Linear`, without torch's own initialisation."""

    def reset_parameters(self) -> None:
        """Leaves the values undefined."""


class RMSNorm(nn.Module):
    """Root-mean-square norm with a learnt gain (Zhang and Sennrich 2019)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Normed (B, T, D)."""
        variance = x_BTD.pow(2).mean(-1, keepdim=True)
        return self.weight * (x_BTD * torch.rsqrt(variance + self.eps))


class Attention(nn.Module):
    """Causal self-attention; groups of heads may share keys and values."""

    def __init__(self, model: LlamaSpec) -> None:
        super().__init__()
        self.heads, self.kv_heads = model.heads, model.kv_heads
        self.head_dim = model.hidden_size // model.heads
        kv_size = self.kv_heads * self.head_dim
        self.q_proj = Linear(model.hidden_size, model.hidden_size, bias=False)
        self.k_proj = Linear(model.hidden_size, kv_size, bias=False)
        self.v_proj = Linear(model.hidden_size, kv_size, bias=False)
        self.o_proj = Linear(model.hidden_size, model.hidden_size, bias=False)

    def forward(self, x_BTD: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
        """Mixed over time, (B, T, D)."""
        batch, tokens, _ = x_BTD.shape
        q_BHTE = self.q_proj(x_BTD).view(batch, tokens, self.heads, self.head_dim).transpose(1, 2)
        k_BKTE = (
            self.k_proj(x_BTD).view(batch, tokens, self.kv_heads, self.head_dim).transpose(1, 2)
        )
        v_BKTE = (
            self.v_proj(x_BTD).view(batch, tokens, self.kv_heads, self.head_dim).transpose(1, 2)
        )
        q_BHTE, k_BKTE = rotate(q_BHTE, cos_TE, sin_TE), rotate(k_BKTE, cos_TE, sin_TE)
        if self.kv_heads != self.heads:
            repeats = self.heads // self.kv_heads
            k_BKTE, v_BKTE = (x.repeat_interleave(repeats, dim=1) for x in (k_BKTE, v_BKTE))
        out_BHTE = F.scaled_dot_product_attention(q_BHTE, k_BKTE, v_BKTE, is_causal=True)
        out_BTD: Tensor = self.o_proj(out_BHTE.transpose(1, 2).reshape(batch, tokens, -1))
        return out_BTD


class Mlp(nn.Module):
    """SwiGLU (Shazeer 2020): down(silu(gate(x)) * up(x))."""

    def __init__(self, model: LlamaSpec) -> None:
        super().__init__()
        self.gate_proj = Linear(model.hidden_size, model.intermediate_size, bias=False)
        self.up_proj = Linear(model.hidden_size, model.intermediate_size, bias=False)
        self.down_proj = Linear(model.intermediate_size, model.hidden_size, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        out_BTD: Tensor = self.down_proj(F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))
        return out_BTD


class Layer(nn.Module):
    """Attention, then feed-forward, each on the normed stream and added to it."""

    def __init__(self, model: LlamaSpec) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(model.hidden_size, float(model.norm_eps))
        self.self_attn = Attention(model)
        self.post_attention_layernorm = RMSNorm(model.hidden_size, float(model.norm_eps))
        self.mlp = Mlp(model)

    def forward(self, x_BTD: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
        """The stream after this layer, (B, T, D)."""
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), cos_TE, sin_TE)
        out_BTD: Tensor = x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        return out_BTD


class Decoder(nn.Module):
    """Embedding, layers and the last norm.

    `checkpoint_activations`: the backward pass computes each layer once more instead of keeping what is inside it.
    """

    checkpoint_activations = False

    def __init__(self, model: LlamaSpec) -> None:
        super().__init__()
        self.embed_tokens = Embedding(model.vocab_size, model.hidden_size)
        self.layers = nn.ModuleList(Layer(model) for _ in range(model.layers))
        self.norm = RMSNorm(model.hidden_size, float(model.norm_eps))
        cos_TE, sin_TE = rotary_tables(model)
        self.register_buffer("cos_TE", cos_TE, persistent=False)
        self.register_buffer("sin_TE", sin_TE, persistent=False)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """(B, T) token ids to (B, T, D)."""
        x_BTD = self.embed_tokens(tokens_BT)
        length = tokens_BT.shape[1]
        cos_TE, sin_TE = (
            self.get_buffer("cos_TE")[:length],
            self.get_buffer("sin_TE")[:length],
        )
        for layer in self.layers:
            x_BTD = self._through(layer, x_BTD, cos_TE, sin_TE)
        out_BTD: Tensor = self.norm(x_BTD)
        return out_BTD

    def _through(self, layer: nn.Module, *inputs: Tensor) -> Tensor:
        # Nothing in a layer is random, so no generator has to be put back.
        out_BTD: Tensor = (
            checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=False)
            if self.checkpoint_activations
            else layer(*inputs)
        )
        return out_BTD


class Llama(nn.Module):
    """The whole model. Its parameters start undefined: load them from `Parameters` first."""

    def __init__(self, spec: LlamaSpec) -> None:
        super().__init__()
        self.context = spec.context
        self.model = Decoder(spec)
        self.lm_head = (
            None if spec.tie_embeddings else Linear(spec.hidden_size, spec.vocab_size, bias=False)
        )

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """(B, T) token ids to (B, T, V) logits."""
        hidden_BTD = self.model(tokens_BT)
        head_VD = self.model.embed_tokens.weight if self.lm_head is None else self.lm_head.weight
        return F.linear(hidden_BTD, head_VD)


def token_losses(network: nn.Module, samples_BS: Tensor) -> Tensor:
    """Of a network that gives logits: (B, S) samples of S = T + 1 tokens to the (B, T) losses of predicting each next token, in nats."""
    logits_BTV: Tensor = network(samples_BS[:, :-1])
    targets_BT = samples_BS[:, 1:]
    return F.cross_entropy(
        logits_BTV.float().flatten(0, 1), targets_BT.flatten(), reduction="none"
    ).view(targets_BT.shape)


def rotary_tables(model: LlamaSpec) -> tuple[Tensor, Tensor]:
    """Cos and sin, (context, E) each; the two halves of E hold the same angles."""
    head_dim = model.hidden_size // model.heads
    powers = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    frequencies = 1.0 / (float(model.rope_theta) ** powers)
    angles = torch.outer(torch.arange(model.context).float(), frequencies)
    doubled = torch.cat((angles, angles), dim=-1)
    return doubled.cos(), doubled.sin()


def rotate(x_BHTE: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
    """Rotary positions in Hugging Face's layout: dimension i is paired with i + E/2."""
    half = x_BHTE.shape[-1] // 2
    turned = torch.cat((-x_BHTE[..., half:], x_BHTE[..., :half]), dim=-1)
    return x_BHTE * cos_TE + turned * sin_TE
