// SPDX-License-Identifier: Apache-2.0 OR MIT
// Window: dual-ported memory, one port per processor. The latency of a port does not depend on the other.
// If both write a word in the same cycle, the far side's value remains; the protocol has no such word.
`default_nettype none
module window (
    input  wire        clk,
    input  wire        near_valid,
    input  wire [15:0] near_addr,
    input  wire [31:0] near_wdata,
    input  wire [ 3:0] near_wstrb,
    output reg         near_ready,
    output reg  [31:0] near_rdata,
    input  wire        far_valid,
    input  wire [15:0] far_addr,
    input  wire [31:0] far_wdata,
    input  wire [ 3:0] far_wstrb,
    output reg         far_ready,
    output reg  [31:0] far_rdata
);
  reg [31:0] words[0:16383];
  integer i;
  always @(posedge clk) begin
    near_ready <= near_valid && !near_ready;
    far_ready  <= far_valid && !far_ready;
    if (near_valid && !near_ready) begin
      near_rdata <= words[near_addr[15:2]];
      for (i = 0; i < 4; i = i + 1)
        if (near_wstrb[i]) words[near_addr[15:2]][8*i+:8] <= near_wdata[8*i+:8];
    end
    if (far_valid && !far_ready) begin
      far_rdata <= words[far_addr[15:2]];
      for (i = 0; i < 4; i = i + 1)
        if (far_wstrb[i]) words[far_addr[15:2]][8*i+:8] <= far_wdata[8*i+:8];
    end
  end
endmodule
`default_nettype wire
